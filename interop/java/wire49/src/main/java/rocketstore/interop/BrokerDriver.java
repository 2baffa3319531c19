package rocketstore.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * Uses a broker in every way that the client of its line has. The commands and answers are lines as in WireDriver.
 *
 * key ACCESS SECRET [CODE]             signs all that starts after it, but requests of that code; "key" alone does not
 * producer NAMESRV GROUP               starts the producer that send uses
 * send KIND TOPIC PREFIX COUNT SIZE    sends messages whose bodies are PREFIX0, PREFIX1, … and dots up to SIZE bytes; KIND is
 *                                      sync, async, oneway, batch or ordered. Rows: queue, queue offset, body
 * transaction NAMESRV GROUP TOPIC BODY sends BODY0 in a transaction and commits it. Row as of send
 * reply TOPIC CLIENT                   sends what answers a request of that client
 * push NAME NAMESRV GROUP TOPIC TAGS KIND FROM
 *                                      starts a push consumer; KIND is cluster, orderly or broadcast, FROM first or last
 * seen NAME                            what it got so far. Rows: queue, queue offset, tags, keys, the property n, length, body
 * stop NAME                            stops it
 * pull NAMESRV GROUP TOPIC TAGS        reads all queues from their minimum with a pull consumer, and stores the offsets. Rows as of seen
 * queues NAMESRV GROUP TOPIC TIME      rows: queue, minimum, maximum, offset by time, stored offset
 * trace NAMESRV GROUP TOPIC            reads a trace topic with the client's decoder. Rows, split by tabs: kind, time, region, group, cost,
 *                                      success, request id, code, topic, message id, offset id, tags, keys, store host, body length, type,
 *                                      transaction id, state, from check, keys of the trace message; and, as "view", what TraceView makes
 *                                      of each: kind, group, cost, status, topic, message id, offset id, tags, keys, store host
 */
public final class BrokerDriver {
    private static final Map<String, Running> CONSUMERS = new ConcurrentHashMap<>();
    private static DefaultMQProducer producer;
    private static RPCHook hook;

    private BrokerDriver() {
    }

    private static final class Running {
        DefaultMQPushConsumer consumer;
        final ConcurrentLinkedQueue<String> seen = new ConcurrentLinkedQueue<>();
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // some clients print
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                for (String row : run(line.split(" "))) {
                    out.println("| " + row);
                }
                answer = "ok";
            } catch (Throwable e) {
                e.printStackTrace();
                StringBuilder text = new StringBuilder("error");
                for (Throwable cause = e; cause != null; cause = cause.getCause()) {
                    text.append(' ').append(cause.toString().replace('\n', ' '));
                }
                answer = text.toString();
            }
            out.println(answer);
            out.flush();
        }
        System.exit(0);
    }

    private static List<String> run(String[] w) throws Exception {
        switch (w[0]) {
            case "key":
                hook = w.length == 1 ? null : signing(w[1], w[2]);
                if (w.length > 3) {
                    hook = forgetting(hook, Integer.parseInt(w[3]));
                }
                return new ArrayList<>();
            case "producer":
                if (producer != null) {
                    producer.shutdown();
                }
                producer = new DefaultMQProducer(w[2], hook);
                producer.setNamesrvAddr(w[1]);
                producer.setInstanceName(w[2]);
                producer.setSendMsgTimeout(10_000);
                producer.setPollNameServerInterval(1000);
                producer.setMqClientApiTimeout(20_000);
                producer.setHeartbeatBrokerInterval(1000);
                producer.start();
                return new ArrayList<>();
            case "send":
                return send(w[1], w[2], w[3], Integer.parseInt(w[4]), Integer.parseInt(w[5]));
            case "transaction":
                return transaction(w[1], w[2], w[3], w[4]);
            case "reply":
                return reply(w[1], w[2]);
            case "push":
                push(w);
                return new ArrayList<>();
            case "seen":
                return new ArrayList<>(CONSUMERS.get(w[1]).seen);
            case "stop":
                CONSUMERS.get(w[1]).consumer.shutdown();
                return new ArrayList<>();
            case "pull":
                return pull(w[1], w[2], w[3], w[4]);
            case "queues":
                return queues(w[1], w[2], w[3], Long.parseLong(w[4]));
            case "trace":
                return TraceReader.rows(pulled(w[1], w[2], w[3], "*"));
            default:
                throw new IllegalArgumentException(w[0]);
        }
    }

    /** The hook that signs requests; only the line that the tests sign with has it here. */
    static RPCHook signing(String access, String secret) throws Exception {
        Class<?> key = Class.forName("org.apache.rocketmq.acl.common.SessionCredentials");
        Object credentials = key.getConstructor(String.class, String.class).newInstance(access, secret);
        return (RPCHook) Class.forName("org.apache.rocketmq.acl.common.AclClientRPCHook").getConstructor(key).newInstance(credentials);
    }

    private static RPCHook forgetting(RPCHook hook, int code) {
        return new RPCHook() {
            @Override
            public void doBeforeRequest(String addr, RemotingCommand request) {
                if (request.getCode() != code) {
                    hook.doBeforeRequest(addr, request);
                }
            }

            @Override
            public void doAfterResponse(String addr, RemotingCommand request, RemotingCommand response) {
                hook.doAfterResponse(addr, request, response);
            }
        };
    }

    private static List<String> transaction(String namesrv, String group, String topic, String body) throws Exception {
        TransactionMQProducer p = new TransactionMQProducer(group, hook);
        p.setNamesrvAddr(namesrv);
        p.setInstanceName(group);
        p.setSendMsgTimeout(10_000);
        p.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message m, Object arg) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt m) {
                return LocalTransactionState.UNKNOW;
            }
        });
        p.start();
        try {
            SendResult r = p.sendMessageInTransaction(message(topic, body, 0, 0), null);
            List<String> rows = new ArrayList<>();
            rows.add(row(r, body + 0));
            return rows;
        } finally {
            p.shutdown();
        }
    }

    private static List<String> reply(String topic, String client) throws Exception {
        Message m = new Message(topic, "answer".getBytes(StandardCharsets.UTF_8));
        MessageAccessor.putProperty(m, "MSG_TYPE", "reply");
        MessageAccessor.putProperty(m, "CORRELATION_ID", "id");
        MessageAccessor.putProperty(m, "REPLY_TO_CLIENT", client);
        MessageAccessor.putProperty(m, "TTL", "3000");
        List<String> rows = new ArrayList<>();
        rows.add(row(producer.send(m), "answer"));
        return rows;
    }

    private static Message message(String topic, String prefix, int i, int size) {
        StringBuilder body = new StringBuilder(prefix + i);
        while (body.length() < size) {
            body.append('.');
        }
        Message m = new Message(topic, i % 2 == 0 ? "TagA" : "TagB", "key" + i, body.toString().getBytes(StandardCharsets.UTF_8));
        m.putUserProperty("n", "v" + i);
        return m;
    }

    private static List<String> send(String kind, String topic, String prefix, int count, int size) throws Exception {
        ConcurrentLinkedQueue<String> rows = new ConcurrentLinkedQueue<>();
        CountDownLatch all = new CountDownLatch(count);
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Message m = message(topic, prefix, i, size);
            String body = prefix + i;
            switch (kind) {
                case "sync":
                    rows.add(row(producer.send(m), body));
                    break;
                case "ordered":
                    rows.add(row(producer.send(m, (queues, message, key) -> queues.get((Integer) key % queues.size()), i), body));
                    break;
                case "oneway":
                    producer.sendOneway(m);
                    break;
                case "async":
                    producer.send(m, new SendCallback() {
                        @Override
                        public void onSuccess(SendResult result) {
                            rows.add(row(result, body));
                            all.countDown();
                        }

                        @Override
                        public void onException(Throwable e) {
                            rows.add("failed " + e);
                            all.countDown();
                        }
                    });
                    break;
                case "batch":
                    batch.add(m);
                    break;
                default:
                    throw new IllegalArgumentException(kind);
            }
        }
        if (kind.equals("batch")) {
            SendResult result = producer.send(batch);
            rows.add(row(result, String.valueOf(result.getOffsetMsgId().split(",").length)));
        }
        if (kind.equals("async") && !all.await(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException(all.getCount() + " callbacks are missing");
        }
        return new ArrayList<>(rows);
    }

    private static String row(SendResult r, String body) {
        if (r.getSendStatus() != SendStatus.SEND_OK) {
            throw new IllegalStateException(r.toString());
        }
        return r.getMessageQueue().getQueueId() + " " + r.getQueueOffset() + " " + body;
    }

    private static String row(MessageExt m) {
        String body = new String(m.getBody(), StandardCharsets.UTF_8);
        int dots = body.indexOf('.');
        return m.getQueueId() + " " + m.getQueueOffset() + " " + m.getTags() + " " + m.getKeys().trim() + " " + m.getProperty("n") + " "
            + body.length() + " " + (dots < 0 ? body : body.substring(0, dots));
    }

    private static void push(String[] w) throws Exception {
        Running r = new Running();
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(w[3], hook, new AllocateMessageQueueAveragely());
        c.setNamesrvAddr(w[2]);
        c.setInstanceName(w[1]);
        c.setPollNameServerInterval(1000);
        c.setMqClientApiTimeout(20_000);
        c.setHeartbeatBrokerInterval(1000);
        c.setPersistConsumerOffsetInterval(1000);
        c.setConsumeFromWhere(w[7].equals("last") ? ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET : ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        if (w[6].equals("broadcast")) {
            broadcast(c);
        }
        c.subscribe(w[4], w[5].replace(",", " || "));
        if (w[6].equals("orderly")) {
            c.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                for (MessageExt m : messages) {
                    r.seen.add(row(m));
                }
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            c.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                for (MessageExt m : messages) {
                    r.seen.add(row(m));
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        c.start();
        r.consumer = c;
        CONSUMERS.put(w[1], r);
    }

    /** The enum lies in another package in each line. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void broadcast(DefaultMQPushConsumer c) throws Exception {
        for (Method m : DefaultMQPushConsumer.class.getMethods()) {
            if (m.getName().equals("setMessageModel")) {
                m.invoke(c, Enum.valueOf((Class) m.getParameterTypes()[0], "BROADCASTING"));
            }
        }
    }

    private static DefaultMQPullConsumer puller(String namesrv, String group) throws Exception {
        DefaultMQPullConsumer c = new DefaultMQPullConsumer(group, hook);
        c.setNamesrvAddr(namesrv);
        c.setInstanceName("pull" + System.nanoTime());
        c.setPollNameServerInterval(1000);
        c.setMqClientApiTimeout(20_000);
        c.start();
        return c;
    }

    private static List<String> pull(String namesrv, String group, String topic, String tags) throws Exception {
        List<String> rows = new ArrayList<>();
        pulled(namesrv, group, topic, tags).forEach(m -> rows.add(row(m)));
        return rows;
    }

    private static List<MessageExt> pulled(String namesrv, String group, String topic, String tags) throws Exception {
        List<MessageExt> found = new ArrayList<>();
        DefaultMQPullConsumer c = puller(namesrv, group);
        try {
            for (MessageQueue q : c.fetchSubscribeMessageQueues(topic)) {
                long max = c.maxOffset(q);
                for (long at = c.minOffset(q); at < max;) {
                    PullResult result = c.pull(q, tags.replace(",", " || "), at, 7);
                    if (result.getMsgFoundList() != null) {
                        found.addAll(result.getMsgFoundList());
                    }
                    at = result.getNextBeginOffset();
                }
                c.updateConsumeOffset(q, max);
            }
            c.getDefaultMQPullConsumerImpl().getOffsetStore().persistAll(c.fetchSubscribeMessageQueues(topic));
        } finally {
            c.shutdown();
        }
        return found;
    }

    private static List<String> queues(String namesrv, String group, String topic, long time) throws Exception {
        List<String> rows = new ArrayList<>();
        DefaultMQPullConsumer c = puller(namesrv, group);
        try {
            for (MessageQueue q : c.fetchSubscribeMessageQueues(topic)) {
                rows.add(q.getQueueId() + " " + c.minOffset(q) + " " + c.maxOffset(q) + " " + c.searchOffset(q, time) + " "
                    + c.fetchConsumeOffset(q, true));
            }
        } finally {
            c.shutdown();
        }
        return rows;
    }
}
