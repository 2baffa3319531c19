package rocketstore.interop;

import com.google.gson.JsonObject;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Map;

/** The real store of one release line, as far as the tests need it. Offsets are those of the store itself. */
public interface Line {
    /** One unit of a consume queue as the real queue gives it. */
    record Unit(long index, long offset, int size, long tagsCode) {
    }

    /** What getMessage answered: its status and the records' bytes. */
    record Got(String status, List<byte[]> records) {
    }

    /** What a put answered. The fields behind status count only when the message was stored. */
    record Put(String status, boolean ok, long offset, long queueOffset, int size, long storeTimestamp, String msgId) {
    }

    /** A message to put. The hosts decide, as in the broker, whether the record gets the IPv6 flags. */
    record Message(String topic, int queueId, byte[] body, int flag, int sysFlag, long bornTimestamp,
                   InetSocketAddress bornHost, InetSocketAddress storeHost, int reconsumeTimes,
                   Map<String, String> properties) {
    }

    /** Makes the store object with the release's own setting names and loads the directory, which runs recovery. */
    boolean load(Map<String, String> settings) throws Exception;

    /** Starts the store without the delivery of delayed messages: only commands may write. */
    void start() throws Exception;

    void shutdown() throws Exception;

    long minPhysical();

    long maxPhysical();

    /** Says whether records still wait to be dispatched to queues or index. */
    boolean behind() throws Exception;

    /** The queues that the store knows: topic and queue ids. */
    Map<String, List<Integer>> queues();

    long minInQueue(String topic, int queueId) throws Exception;

    long maxInQueue(String topic, int queueId) throws Exception;

    List<Unit> units(String topic, int queueId) throws Exception;

    Got get(String topic, int queueId, long from, int max) throws Exception;

    /** The bytes of the record at a physical offset, or null. */
    byte[] at(long offset);

    /** The readable bytes from a physical offset to the end of its file, or null. */
    byte[] log(long offset);

    /** The records that the index finds, in its order. */
    List<byte[]> query(String topic, String key, int max) throws Exception;

    /** The real decoder's view of a record. */
    JsonObject decode(byte[] record) throws Exception;

    List<Put> put(List<Message> messages, boolean batch) throws Exception;

    /** Ends the transaction of a prepared message as the broker of 3.1 does; null when it does not find the message. */
    default Put end(long prepared, boolean commit) throws Exception {
        throw new UnsupportedOperationException("no state table");
    }

    /** What one round of 3.1's check-back asks: group hash, number in the table, physical offset and size of each. */
    default List<long[]> checks() throws Exception {
        throw new UnsupportedOperationException("no state table");
    }

    /** The number that the next prepared message of 3.1 gets. */
    default long nextNumber() throws Exception {
        throw new UnsupportedOperationException("no state table");
    }

    /** The times of the checkpoint: physic, logics, index. */
    long[] checkpoint() throws Exception;
}
