package rocketstore.interop;

import com.google.gson.JsonObject;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBatch;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.store.AppendMessageResult;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;
import org.apache.rocketmq.store.StoreCheckpoint;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.queue.ConsumeQueueInterface;
import org.apache.rocketmq.store.queue.CqUnit;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** The store of org.apache.rocketmq 5.3.3. */
public final class Line53 implements Line {
    private static final String GROUP = "interop";

    private DefaultMessageStore store;

    @Override
    public boolean load(Map<String, String> settings) throws Exception {
        MessageStoreConfig config = new MessageStoreConfig();
        Properties p = new Properties();
        p.putAll(settings);
        MixAll.properties2Object(p, config);
        BrokerConfig broker = new BrokerConfig();
        broker.setBrokerName(GROUP);
        store = new DefaultMessageStore(config, new BrokerStatsManager(GROUP, false), (a, b, c, d, e, f, g) -> { }, broker,
            new ConcurrentHashMap<>());
        return store.load();
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
    public boolean behind() {
        return store.dispatchBehindBytes() > 0;
    }

    @Override
    public Map<String, List<Integer>> queues() {
        Map<String, List<Integer>> all = new TreeMap<>();
        store.getConsumeQueueTable().forEach((topic, ids) -> all.put(topic, ids.keySet().stream().sorted().toList()));
        return all;
    }

    @Override
    public long minInQueue(String topic, int queueId) throws Exception {
        return store.getMinOffsetInQueue(topic, queueId);
    }

    @Override
    public long maxInQueue(String topic, int queueId) throws Exception {
        return store.getMaxOffsetInQueue(topic, queueId);
    }

    @Override
    public List<Unit> units(String topic, int queueId) {
        ConsumeQueueInterface queue = store.findConsumeQueue(topic, queueId);
        List<Unit> units = new ArrayList<>();
        long end = queue.getMaxOffsetInQueue();
        for (long at = queue.getMinOffsetInQueue(); at < end; at++) {
            CqUnit u = queue.get(at);
            if (u == null) {
                break;
            }
            units.add(new Unit(u.getQueueOffset(), u.getPos(), u.getSize(), u.getTagsCode()));
        }
        return units;
    }

    @Override
    public Got get(String topic, int queueId, long from, int max) {
        GetMessageResult r = store.getMessage(GROUP, topic, queueId, from, max, null);
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

    private static byte[] take(SelectMappedBufferResult r) {
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
        MessageExt m = MessageDecoder.decode(ByteBuffer.wrap(record), true, false, false);
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
            return List.of(result(store.putMessages(batch(messages))));
        }
        List<Put> results = new ArrayList<>();
        for (Message m : messages) {
            results.add(result(store.putMessage(inner(m))));
        }
        return results;
    }

    private static Put result(PutMessageResult r) {
        AppendMessageResult a = r.getAppendMessageResult();
        if (a == null) {
            return new Put(r.getPutMessageStatus().name(), false, -1, -1, 0, 0, "");
        }
        return new Put(r.getPutMessageStatus().name(), r.isOk(), a.getWroteOffset(), a.getLogicsOffset(), a.getWroteBytes(),
            a.getStoreTimestamp(), a.getMsgId());
    }

    private static MessageExtBrokerInner inner(Message m) {
        MessageExtBrokerInner msg = new MessageExtBrokerInner();
        fill(msg, m);
        MessageAccessor.setProperties(msg, m.properties());
        msg.setBody(m.body());
        msg.setFlag(m.flag());
        msg.setPropertiesString(MessageDecoder.messageProperties2String(m.properties()));
        msg.setTagsCode(MessageExtBrokerInner.tagsString2tagsCode(msg.getTags()));
        return msg;
    }

    private static MessageExtBatch batch(List<Message> messages) {
        MessageExtBatch msg = new MessageExtBatch();
        fill(msg, messages.get(0));
        List<org.apache.rocketmq.common.message.Message> items = new ArrayList<>();
        for (Message m : messages) {
            var item = new org.apache.rocketmq.common.message.Message(m.topic(), m.body());
            item.setFlag(m.flag());
            MessageAccessor.setProperties(item, m.properties());
            items.add(item);
        }
        msg.setBody(MessageDecoder.encodeMessages(items));
        return msg;
    }

    private static void fill(MessageExt msg, Message m) {
        msg.setTopic(m.topic());
        msg.setQueueId(m.queueId());
        msg.setSysFlag(m.sysFlag());
        msg.setBornTimestamp(m.bornTimestamp());
        msg.setBornHost(m.bornHost());
        msg.setStoreHost(m.storeHost());
        msg.setReconsumeTimes(m.reconsumeTimes());
    }

    @Override
    public long[] checkpoint() {
        StoreCheckpoint c = store.getStoreCheckpoint();
        return new long[] {c.getPhysicMsgTimestamp(), c.getLogicsMsgTimestamp(), c.getIndexMsgTimestamp()};
    }
}
