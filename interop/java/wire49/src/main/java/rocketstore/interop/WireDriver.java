package rocketstore.interop;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.RPCHook;

/**
 * Works with the real client of its line. One command per line of the standard input, its words split by spaces; the
 * answer is lines that begin with "| " and then one that is "ok" or "error" and a text.
 *
 * producer NAMESRV GROUP         starts the producer that send uses
 * send TOPIC PREFIX COUNT        sends COUNT messages with the bodies PREFIX0, PREFIX1, …
 * consume NAMESRV GROUP TOPIC PREFIX COUNT SECONDS
 *                                consumes until COUNT different bodies with that prefix came
 * key ACCESS SECRET              signs what ext asks from then on; "key" alone does not. admin signs if conf/tools.yml has a key
 * admin WORDS…                   runs mqadmin in this process, if it is on the class path
 * ext NAMESRV METHOD ARGS…       calls a method of DefaultMQAdminExt and gives its result; "-" is an empty text
 */
public final class WireDriver {
    private static DefaultMQProducer producer;
    private static RPCHook hook;

    private WireDriver() {
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // some clients print
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                String text = run(line.split(" "));
                for (String row : text.isEmpty() ? new String[0] : text.split("\n")) {
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

    private static String run(String[] w) throws Exception {
        switch (w[0]) {
            case "producer":
                if (producer != null) {
                    producer.shutdown();
                }
                producer = new DefaultMQProducer(w[2]);
                producer.setNamesrvAddr(w[1]);
                producer.setPollNameServerInterval(1000);
                producer.start();
                return "";
            case "send":
                return send(w[1], w[2], Integer.parseInt(w[3]));
            case "consume":
                return consume(w[1], w[2], w[3], w[4], Integer.parseInt(w[5]), Integer.parseInt(w[6]));
            case "key":
                hook = w.length == 1 ? null : BrokerDriver.signing(w[1], w[2]);
                return "";
            case "admin":
                return admin(Arrays.copyOfRange(w, 1, w.length));
            case "ext":
                return ext(w[1], w[2], Arrays.copyOfRange(w, 3, w.length));
            default:
                throw new IllegalArgumentException(w[0]);
        }
    }

    private static String send(String topic, String prefix, int count) throws Exception {
        for (int i = 0; i < count; i++) {
            Message m = new Message(topic, "TagA", "key" + i, (prefix + i).getBytes(StandardCharsets.UTF_8));
            SendStatus status = producer.send(m, 10_000).getSendStatus();
            if (status != SendStatus.SEND_OK) {
                throw new IllegalStateException(status.toString());
            }
        }
        return "";
    }

    private static String consume(String namesrv, String group, String topic, String prefix, int count, int seconds) throws Exception {
        Set<String> seen = ConcurrentHashMap.newKeySet();
        CountDownLatch enough = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = start(namesrv, group, topic, prefix, count, seen, enough);
        for (int i = 0; consumer == null && i < seconds; i++) {
            Thread.sleep(1000);
            consumer = start(namesrv, group, topic, prefix, count, seen, enough);
        }
        if (consumer == null) {
            throw new IllegalStateException("the consumer does not start");
        }
        enough.await(seconds, TimeUnit.SECONDS);
        consumer.shutdown();
        return String.join("\n", seen);
    }

    /** Starts a consumer. A new one of 5.3 fails, and gives null, when the first name server that it tries is down. */
    private static DefaultMQPushConsumer start(String namesrv, String group, String topic, String prefix, int count, Set<String> seen,
            CountDownLatch enough) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(namesrv);
        consumer.setPollNameServerInterval(1000);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "TagA");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                String body = new String(m.getBody(), StandardCharsets.UTF_8);
                if (body.startsWith(prefix) && seen.add(body) && seen.size() >= count) {
                    enough.countDown();
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        try {
            consumer.start();
        } catch (IllegalStateException e) {
            return null;
        }
        return consumer;
    }

    private static String admin(String[] words) throws Exception {
        PrintStream before = System.out;
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        System.setOut(new PrintStream(text, true, "UTF-8"));
        try {
            Class.forName("org.apache.rocketmq.tools.command.MQAdminStartup")
                .getMethod("main0", String[].class, RPCHook.class).invoke(null, words, null);
        } finally {
            System.setOut(before);
        }
        return text.toString("UTF-8");
    }

    private static String ext(String namesrv, String name, String[] words) throws Exception {
        Class<?> type = Class.forName("org.apache.rocketmq.tools.admin.DefaultMQAdminExt");
        Object tool = type.getConstructor(RPCHook.class).newInstance(hook);
        type.getMethod("setNamesrvAddr", String.class).invoke(tool, namesrv);
        type.getMethod("start").invoke(tool);
        try {
            for (Method m : type.getMethods()) {
                if (m.getName().equals(name) && m.getParameterCount() == words.length) {
                    Object[] values = new Object[words.length];
                    for (int i = 0; i < words.length; i++) {
                        values[i] = value(m.getParameterTypes()[i], words[i].equals("-") ? "" : words[i]);
                    }
                    return String.valueOf(m.invoke(tool, values));
                }
            }
            throw new IllegalArgumentException(name);
        } catch (InvocationTargetException e) {
            throw e.getCause() instanceof Exception ? (Exception) e.getCause() : e;
        } finally {
            type.getMethod("shutdown").invoke(tool);
        }
    }

    private static Object value(Class<?> type, String word) {
        if (type == long.class) {
            return Long.parseLong(word);
        }
        return type == boolean.class ? (Object) Boolean.parseBoolean(word) : word;
    }
}
