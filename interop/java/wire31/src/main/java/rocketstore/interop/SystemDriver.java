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
import com.alibaba.rocketmq.client.QueryResult;
import com.alibaba.rocketmq.client.consumer.DefaultMQPushConsumer;
import com.alibaba.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import com.alibaba.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import com.alibaba.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import com.alibaba.rocketmq.client.consumer.listener.MessageListenerOrderly;
import com.alibaba.rocketmq.client.producer.DefaultMQProducer;
import com.alibaba.rocketmq.client.producer.LocalTransactionState;
import com.alibaba.rocketmq.client.producer.SendResult;
import com.alibaba.rocketmq.client.producer.SendStatus;
import com.alibaba.rocketmq.client.producer.LocalTransactionExecuter;
import com.alibaba.rocketmq.client.producer.TransactionCheckListener;
import com.alibaba.rocketmq.client.producer.TransactionMQProducer;
import com.alibaba.rocketmq.common.consumer.ConsumeFromWhere;
import com.alibaba.rocketmq.common.message.Message;
import com.alibaba.rocketmq.common.message.MessageExt;

/**
 * Retries, delays, transactions and queries with the client of its line. The commands and answers are lines as in WireDriver.
 *
 * producer NAMESRV GROUP              starts the producer that delay and query use
 * delay TOPIC BODY LEVEL              sends one message. Row: its offset message id
 * push NAME NAMESRV GROUP TOPIC KIND MOST
 *                                     starts a consumer, KIND cluster or orderly, that fails on every message whose body begins with
 *                                     "bad"; MOST is how many retries it asks for, -1 for the default
 * seen NAME                           what it got so far. Rows: time in ms, topic, retries, body, message id
 * stop NAME                           stops it
 * tx NAME NAMESRV GROUP ANSWER        starts a transaction producer that answers checks with ANSWER: commit, rollback or unknown
 * half NAME TOPIC BODY OUTCOME        sends in a transaction whose local part has that outcome. Row: its offset message id
 * checked NAME                        the bodies that it was asked about
 * end NAME                            stops the transaction producer
 * query TOPIC KEY                     bodies of the messages with that key
 * view TOPIC ID                       body of the message with that id, an offset id
 */
public final class SystemDriver {
    private static final Map<String, DefaultMQPushConsumer> CONSUMERS = new ConcurrentHashMap<>();
    private static final Map<String, TransactionMQProducer> PRODUCERS = new ConcurrentHashMap<>();
    private static final Map<String, ConcurrentLinkedQueue<String>> ROWS = new ConcurrentHashMap<>();
    private static DefaultMQProducer producer;

    private SystemDriver() {
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
                answer = "error " + e.toString().replace('\n', ' ');
            }
            out.println(answer);
            out.flush();
        }
        System.exit(0);
    }

    private static List<String> run(String[] w) throws Exception {
        switch (w[0]) {
            case "producer":
                producer = new DefaultMQProducer(w[2]);
                configure(producer, w[1], w[2]);
                producer.start();
                return new ArrayList<>();
            case "delay":
                Message m = new Message(w[1], "TagA", "key-" + w[2], w[2].getBytes(StandardCharsets.UTF_8));
                m.setDelayTimeLevel(Integer.parseInt(w[3]));
                return List.of(id(producer.send(m)));
            case "push":
                push(w);
                return new ArrayList<>();
            case "seen":
            case "checked":
                return new ArrayList<>(ROWS.get(w[1]));
            case "stop":
                CONSUMERS.remove(w[1]).shutdown();
                return new ArrayList<>();
            case "tx":
                tx(w);
                return new ArrayList<>();
            case "half":
                Message half = new Message(w[2], "TagA", "key-" + w[3], w[3].getBytes(StandardCharsets.UTF_8));
                return List.of(id(PRODUCERS.get(w[1]).sendMessageInTransaction(half, (LocalTransactionExecuter) (message, outcome) -> state((String) outcome), w[4])));
            case "end":
                PRODUCERS.remove(w[1]).shutdown();
                return new ArrayList<>();
            case "query":
                List<String> rows = new ArrayList<>();
                QueryResult result = producer.queryMessage(w[1], w[2], 32, 0, System.currentTimeMillis() + 60_000);
                result.getMessageList().forEach(found -> rows.add(new String(found.getBody(), StandardCharsets.UTF_8)));
                return rows;
            case "view":
                return List.of(new String(producer.viewMessage(w[2]).getBody(), StandardCharsets.UTF_8));
            default:
                throw new IllegalArgumentException(w[0]);
        }
    }

    private static void configure(DefaultMQProducer p, String namesrv, String name) {
        p.setNamesrvAddr(namesrv);
        p.setInstanceName(name + System.nanoTime());
        p.setSendMsgTimeout(10_000);
        p.setPollNameServerInteval(1000);
        p.setHeartbeatBrokerInterval(1000);
    }

    private static String id(SendResult r) {
        if (r.getSendStatus() != SendStatus.SEND_OK) {
            throw new IllegalStateException(r.toString());
        }
        return r.getMsgId() + " " + r.getMsgId(); // the only id that it has
    }

    private static LocalTransactionState state(String name) {
        switch (name) {
            case "commit":
                return LocalTransactionState.COMMIT_MESSAGE;
            case "rollback":
                return LocalTransactionState.ROLLBACK_MESSAGE;
            default:
                return LocalTransactionState.UNKNOW;
        }
    }

    private static void tx(String[] w) throws Exception {
        ConcurrentLinkedQueue<String> checked = new ConcurrentLinkedQueue<>();
        TransactionMQProducer p = new TransactionMQProducer(w[3]);
        configure(p, w[2], w[1]);
        p.setTransactionCheckListener((TransactionCheckListener) m -> {
            checked.add(new String(m.getBody(), StandardCharsets.UTF_8));
            return state(w[4]);
        });
        p.start();
        ROWS.put(w[1], checked);
        PRODUCERS.put(w[1], p);
    }

    private static boolean bad(ConcurrentLinkedQueue<String> seen, MessageExt m) {
        String body = new String(m.getBody(), StandardCharsets.UTF_8);
        seen.add(System.currentTimeMillis() + " " + m.getTopic() + " " + m.getReconsumeTimes() + " " + body + " " + m.getMsgId());
        return body.startsWith("bad");
    }

    private static void push(String[] w) throws Exception {
        ConcurrentLinkedQueue<String> seen = new ConcurrentLinkedQueue<>();
        DefaultMQPushConsumer c = new DefaultMQPushConsumer(w[3]);
        c.setNamesrvAddr(w[2]);
        c.setInstanceName(w[1]);
        c.setPollNameServerInteval(1000);
        c.setHeartbeatBrokerInterval(1000);
        c.setPersistConsumerOffsetInterval(1000);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        most(c, Integer.parseInt(w[6]));
        c.subscribe(w[4], "*");
        if (w[5].equals("orderly")) {
            c.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                if (!bad(seen, messages.get(0))) {
                    return ConsumeOrderlyStatus.SUCCESS;
                }
                context.setSuspendCurrentQueueTimeMillis(100);
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            });
        } else {
            c.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
                bad(seen, messages.get(0)) ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
        }
        c.start();
        ROWS.put(w[1], seen);
        CONSUMERS.put(w[1], c);
    }

    /** A client that cannot say how many retries it wants leaves it to the group. */
    private static void most(DefaultMQPushConsumer c, int retries) throws Exception {
        for (Method m : DefaultMQPushConsumer.class.getMethods()) {
            if (m.getName().equals("setMaxReconsumeTimes")) {
                m.invoke(c, retries);
            }
        }
    }
}
