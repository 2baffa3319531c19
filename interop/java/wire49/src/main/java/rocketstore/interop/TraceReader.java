package rocketstore.interop;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.StringJoiner;
import org.apache.rocketmq.client.trace.TraceBean;
import org.apache.rocketmq.client.trace.TraceContext;
import org.apache.rocketmq.client.trace.TraceDataEncoder;
import org.apache.rocketmq.client.trace.TraceView;
import org.apache.rocketmq.common.message.MessageExt;

/** Reads trace messages with the decoders of the client: the one that all of its tools use, and the view of mqadmin. */
final class TraceReader {
    private TraceReader() {
    }

    /** BrokerDriver says what the rows hold. */
    static List<String> rows(List<MessageExt> messages) {
        List<String> rows = new ArrayList<>();
        for (MessageExt m : messages) {
            for (TraceContext c : TraceDataEncoder.decoderFromTraceDataString(new String(m.getBody(), StandardCharsets.UTF_8))) {
                for (TraceBean b : c.getTraceBeans()) {
                    rows.add(row(c.getTraceType(), c.getTimeStamp(), c.getRegionId(), c.getGroupName(), c.getCostTime(), c.isSuccess(),
                        c.getRequestId(), c.getContextCode(), b.getTopic(), b.getMsgId(), b.getOffsetMsgId(), b.getTags(), b.getKeys(),
                        b.getStoreHost(), b.getBodyLength(), b.getMsgType(), b.getTransactionId(), b.getTransactionState(),
                        b.isFromTransactionCheck(), m.getKeys()));
                    for (TraceView v : TraceView.decodeFromTraceTransData(b.getMsgId(), m)) {
                        rows.add(row("view", v.getMsgType(), v.getGroupName(), v.getCostTime(), v.getStatus(), v.getTopic(), v.getMsgId(),
                            v.getOffSetMsgId(), v.getTags(), v.getKeys(), v.getStoreHost()));
                    }
                }
            }
        }
        return rows;
    }

    private static String row(Object... values) {
        StringJoiner row = new StringJoiner("\t");
        for (Object v : values) {
            row.add(String.valueOf(v));
        }
        return row.toString();
    }
}
