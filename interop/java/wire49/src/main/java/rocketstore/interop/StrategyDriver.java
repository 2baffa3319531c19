package rocketstore.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Asks the client's strategies for shares. The commands and answers are lines as in WireDriver.
 *
 * allocate STRATEGY SELF CLIENTS QUEUES   CLIENTS are parted by commas, QUEUES are broker:id, parted by commas; both are sorted here as
 *                                         the client does it. Rows: the share, broker:id
 */
public final class StrategyDriver {
    private StrategyDriver() {
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err); // some clients print
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                for (String row : allocate(line.split(" "))) {
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

    private static List<String> allocate(String[] w) throws Exception {
        List<String> clients = new ArrayList<>(Arrays.asList(w[3].split(",")));
        Collections.sort(clients);
        List<MessageQueue> queues = new ArrayList<>();
        for (String q : w[4].split(",")) {
            int colon = q.lastIndexOf(':');
            queues.add(new MessageQueue("T", q.substring(0, colon), Integer.parseInt(q.substring(colon + 1))));
        }
        Collections.sort(queues);
        List<String> rows = new ArrayList<>();
        for (MessageQueue q : strategy(w[1]).allocate("G", w[2], queues, clients)) {
            rows.add(q.getBrokerName() + ":" + q.getQueueId());
        }
        return rows;
    }

    private static AllocateMessageQueueStrategy strategy(String name) throws Exception {
        switch (name) {
            case "average":
                return new AllocateMessageQueueAveragely();
            case "circle":
                return new AllocateMessageQueueAveragelyByCircle();
            case "hash":
                return new AllocateMessageQueueConsistentHash();
            case "room":
                AllocateMessageQueueByMachineRoom room = new AllocateMessageQueueByMachineRoom();
                room.setConsumeridcs(new HashSet<>(Arrays.asList("r1", "r2")));
                return room;
            case "nearby":
                return new AllocateMachineRoomNearby(new AllocateMessageQueueAveragely(), new AllocateMachineRoomNearby.MachineRoomResolver() {
                    @Override
                    public String brokerDeployIn(MessageQueue queue) {
                        return queue.getBrokerName().split("@")[0];
                    }

                    @Override
                    public String consumerDeployIn(String client) {
                        return client.split("@")[0];
                    }
                });
            default:
                throw new IllegalArgumentException(name);
        }
    }
}
