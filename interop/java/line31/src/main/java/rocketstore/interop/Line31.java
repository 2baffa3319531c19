package rocketstore.interop;

import com.alibaba.rocketmq.common.MixAll;
import com.alibaba.rocketmq.common.TopicFilterType;
import com.alibaba.rocketmq.common.message.MessageAccessor;
import com.alibaba.rocketmq.common.message.MessageConst;
import com.alibaba.rocketmq.common.message.MessageDecoder;
import com.alibaba.rocketmq.common.message.MessageExt;
import com.alibaba.rocketmq.common.sysflag.MessageSysFlag;
import com.alibaba.rocketmq.store.CommitLog;
import com.alibaba.rocketmq.store.ConsumeQueue;
import com.alibaba.rocketmq.store.DefaultMessageStore;
import com.alibaba.rocketmq.store.GetMessageResult;
import com.alibaba.rocketmq.store.MessageExtBrokerInner;
import com.alibaba.rocketmq.store.PutMessageResult;
import com.alibaba.rocketmq.store.QueryMessageResult;
import com.alibaba.rocketmq.store.SelectMapedBufferResult;
import com.alibaba.rocketmq.store.StoreCheckpoint;
import com.alibaba.rocketmq.store.config.MessageStoreConfig;
import com.alibaba.rocketmq.store.index.IndexService;
import com.alibaba.rocketmq.store.schedule.ScheduleMessageService;
import com.alibaba.rocketmq.store.transaction.TransactionStateService;
import com.google.gson.JsonObject;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.Timer;
import java.util.TimerTask;
import java.util.TreeMap;

/** The store of com.alibaba.rocketmq 3.1.4. */
public final class Line31 implements Line {
    /** Knows the delay levels, so that recovery computes delivery times, but never delivers. */
    private static final class IdleSchedule extends ScheduleMessageService {
        IdleSchedule(DefaultMessageStore store) {
            super(store);
        }

        @Override
        public void start() {
        }
    }

    /** Keeps the tasks of the check-back, so that a round is made when it is asked for and not a minute later. */
    private static final class Rounds extends Timer {
        private final List<TimerTask> tasks = new ArrayList<>();

        Rounds() {
            super(true);
        }

        @Override
        public void scheduleAtFixedRate(TimerTask task, long delay, long period) {
            tasks.add(task);
        }
    }

    private final List<long[]> asked = new ArrayList<>();
    private Rounds rounds;
    private DefaultMessageStore store;
    private Object dispatch; // its class is not public
    private Method remaining;
    private Queue<?> indexRequests;

    @Override
    public boolean load(Map<String, String> settings) throws Exception {
        MessageStoreConfig config = new MessageStoreConfig();
        Properties p = new Properties();
        p.putAll(settings);
        MixAll.properties2Object(p, config);
        // 3.1.4 cuts the queues at the end of an unclean recovery while another thread still writes their units; after each
        // record it waits a millisecond for that thread when so many are ahead of it.
        config.setPutMsgIndexHightWater(0);
        store = new DefaultMessageStore(config,
            (hash, number, offset, size) -> asked.add(new long[] {hash, number, offset, size}));
        rounds = new Rounds();
        field(TransactionStateService.class, "timer").set(store.getTransactionStateService(), rounds);
        field(DefaultMessageStore.class, "scheduleMessageService").set(store, new IdleSchedule(store));
        dispatch = field(DefaultMessageStore.class, "dispatchMessageService").get(store);
        remaining = dispatch.getClass().getMethod("hasRemainMessage");
        remaining.setAccessible(true);
        Object index = field(DefaultMessageStore.class, "indexService").get(store);
        indexRequests = (Queue<?>) field(IndexService.class, "requestQueue").get(index);
        // To print its progress, at its first flush and each hundred seconds, 3.1.4 asks for the last file in a way that makes
        // the next one; when a put rolls at that moment, the file is listed twice and what follows is read at wrong places.
        Object flush = field(CommitLog.class, "flushCommitLogService").get(store.getCommitLog());
        field(flush.getClass(), "printTimes").set(flush, 1L);
        return store.load();
    }

    private static Field field(Class<?> in, String name) throws Exception {
        Field f = in.getDeclaredField(name);
        f.setAccessible(true);
        return f;
    }

    @Override
    public void start() throws Exception {
        store.start();
    }

    @Override
    public void shutdown() {
        store.shutdown();
    }

    @Override
    public long minPhysical() {
        return store.getMinPhyOffset();
    }

    @Override
    public long maxPhysical() {
        return store.getMaxPhyOffset();
    }

    @Override
    public boolean behind() throws Exception {
        return (Boolean) remaining.invoke(dispatch) || !indexRequests.isEmpty();
    }

    @Override
    public Map<String, List<Integer>> queues() {
        Map<String, List<Integer>> all = new TreeMap<>();
        store.getConsumeQueueTable().forEach((topic, ids) -> all.put(topic, ids.keySet().stream().sorted().toList()));
        return all;
    }

    @Override
    public long minInQueue(String topic, int queueId) {
        return store.getMinOffsetInQuque(topic, queueId);
    }

    @Override
    public long maxInQueue(String topic, int queueId) {
        return store.getMaxOffsetInQuque(topic, queueId);
    }

    @Override
    public List<Unit> units(String topic, int queueId) {
        ConsumeQueue queue = store.findConsumeQueue(topic, queueId);
        List<Unit> units = new ArrayList<>();
        long end = queue.getMaxOffsetInQuque();
        for (long at = queue.getMinOffsetInQuque(); at < end; at++) {
            SelectMapedBufferResult r = queue.getIndexBuffer(at);
            if (r == null) {
                break;
            }
            ByteBuffer b = r.getByteBuffer();
            units.add(new Unit(at, b.getLong(), b.getInt(), b.getLong()));
            r.release();
        }
        return units;
    }

    @Override
    public Got get(String topic, int queueId, long from, int max) {
        GetMessageResult r = store.getMessage(topic, queueId, from, max, null);
        List<byte[]> records = copy(r.getMessageBufferList());
        r.release();
        return new Got(r.getStatus().name(), records);
    }

    private static List<byte[]> copy(List<ByteBuffer> buffers) {
        List<byte[]> all = new ArrayList<>();
        for (ByteBuffer b : buffers) {
            byte[] bytes = new byte[b.remaining()];
            b.get(bytes);
            all.add(bytes);
        }
        return all;
    }

    private static byte[] take(SelectMapedBufferResult r) {
        if (r == null) {
            return null;
        }
        byte[] b = new byte[r.getSize()];
        r.getByteBuffer().get(b);
        r.release();
        return b;
    }

    @Override
    public byte[] at(long offset) {
        return take(store.selectOneMessageByOffset(offset));
    }

    @Override
    public byte[] log(long offset) {
        return take(store.getCommitLogData(offset));
    }

    @Override
    public List<byte[]> query(String topic, String key, int max) {
        QueryMessageResult r = store.queryMessage(topic, key, max, 0, Long.MAX_VALUE);
        List<byte[]> records = copy(r.getMessageBufferList());
        r.release();
        return records;
    }

    @Override
    public JsonObject decode(byte[] record) throws Exception {
        MessageExt m = MessageDecoder.decode(ByteBuffer.wrap(record));
        if (m == null) {
            throw new IllegalStateException("the decoder refuses the record");
        }
        JsonObject r = new JsonObject();
        r.addProperty("physicalOffset", m.getCommitLogOffset());
        r.addProperty("storeSize", m.getStoreSize());
        r.addProperty("topic", m.getTopic());
        r.addProperty("queueId", m.getQueueId());
        r.addProperty("queueOffset", m.getQueueOffset());
        r.addProperty("flag", m.getFlag());
        r.addProperty("sysFlag", m.getSysFlag());
        r.addProperty("bornTimestamp", m.getBornTimestamp());
        r.addProperty("bornHost", StoreDriver.text((InetSocketAddress) m.getBornHost()));
        r.addProperty("storeTimestamp", m.getStoreTimestamp());
        r.addProperty("storeHost", StoreDriver.text((InetSocketAddress) m.getStoreHost()));
        r.addProperty("reconsumeTimes", m.getReconsumeTimes());
        r.addProperty("preparedTransactionOffset", m.getPreparedTransactionOffset());
        r.addProperty("bodyCRC", m.getBodyCRC());
        byte[] body = m.getBody() == null ? new byte[0] : m.getBody();
        r.addProperty("bodyLength", body.length);
        r.addProperty("bodyMd5", StoreDriver.md5(body));
        r.addProperty("msgId", m.getMsgId());
        JsonObject properties = new JsonObject();
        if (m.getProperties() != null) {
            m.getProperties().forEach(properties::addProperty);
        }
        r.add("properties", properties);
        return r;
    }

    @Override
    public List<Put> put(List<Message> messages, boolean batch) {
        if (batch) {
            throw new UnsupportedOperationException("3.1.4 has no batches");
        }
        List<Put> results = new ArrayList<>();
        for (Message m : messages) {
            results.add(result(store.putMessage(inner(m))));
        }
        return results;
    }

    @Override
    public Put end(long prepared, boolean commit) {
        MessageExt m = store.lookMessageByOffset(prepared);
        if (m == null) {
            return null;
        }
        int type = commit ? MessageSysFlag.TransactionCommitType : MessageSysFlag.TransactionRollbackType;
        MessageExtBrokerInner msg = inner(new Message(m.getTopic(), m.getQueueId(), commit ? m.getBody() : null, m.getFlag(),
            MessageSysFlag.resetTransactionValue(m.getSysFlag(), type), m.getBornTimestamp(), (InetSocketAddress) m.getBornHost(),
            (InetSocketAddress) m.getStoreHost(), m.getReconsumeTimes(), m.getProperties()));
        msg.setWaitStoreMsgOK(false);
        MessageAccessor.clearProperty(msg, MessageConst.PROPERTY_DELAY_TIME_LEVEL);
        msg.setQueueOffset(m.getQueueOffset());
        msg.setPreparedTransactionOffset(prepared);
        return result(store.putMessage(msg));
    }

    @Override
    public List<long[]> checks() {
        asked.clear();
        rounds.tasks.forEach(TimerTask::run);
        return List.copyOf(asked);
    }

    @Override
    public long nextNumber() {
        return store.getTransactionStateService().getTranStateTableOffset().get();
    }

    private static Put result(PutMessageResult r) {
        var a = r.getAppendMessageResult();
        return a == null
            ? new Put(r.getPutMessageStatus().name(), false, -1, -1, 0, 0, "")
            : new Put(r.getPutMessageStatus().name(), r.isOk(), a.getWroteOffset(), a.getLogicsOffset(), a.getWroteBytes(),
                a.getStoreTimestamp(), a.getMsgId());
    }

    private static MessageExtBrokerInner inner(Message m) {
        MessageExtBrokerInner msg = new MessageExtBrokerInner();
        msg.setTopic(m.topic());
        msg.setQueueId(m.queueId());
        msg.setBody(m.body());
        msg.setFlag(m.flag());
        msg.setSysFlag(m.sysFlag());
        msg.setBornTimestamp(m.bornTimestamp());
        msg.setBornHost(m.bornHost());
        msg.setStoreHost(m.storeHost());
        msg.setReconsumeTimes(m.reconsumeTimes());
        MessageAccessor.setProperties(msg, m.properties());
        msg.setPropertiesString(MessageDecoder.messageProperties2String(m.properties()));
        msg.setTagsCode(MessageExtBrokerInner.tagsString2tagsCode(TopicFilterType.SINGLE_TAG, msg.getTags()));
        return msg;
    }

    @Override
    public long[] checkpoint() {
        StoreCheckpoint c = store.getStoreCheckpoint();
        return new long[] {c.getPhysicMsgTimestamp(), c.getLogicsMsgTimestamp(), c.getIndexMsgTimestamp()};
    }
}
