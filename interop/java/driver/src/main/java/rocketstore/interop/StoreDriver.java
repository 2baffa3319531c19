package rocketstore.interop;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Drives one real store from standard input: a JSON object with a "cmd" per line, answered by a JSON object per line with
 * "ok" and, when that is false, "error". One process serves many directories, one after the other.
 *
 * <pre>
 * open     settings{}            load and start: loaded, bounds and checkpoint as they were before the start
 * dump     logFileSize           every record by the real decoder, every queue with its units and what getMessage gives
 * at       offsets[]             the records at these physical offsets
 * query    keys[{topic,key}]     the physical offsets that the index finds for each
 * put      messages[], batch     puts them and waits until they are dispatched
 * end      ends[{offset,commit}]  ends transactions of 3.1 and waits until that is dispatched
 * checks                         what one round of 3.1's check-back asks, and the number of the next prepared message
 * shutdown                       stops the store cleanly
 * halt                           ends the process at once, as a kill does
 * </pre>
 */
public final class StoreDriver {
    private static final int BLANK = 0xCBD43194;
    private static final long SETTLE_MILLIS = 30_000;

    private final Line line;

    private StoreDriver(Line line) {
        this.line = line;
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // whatever the store prints must not mix with the answers
        Line line = (Line) Class.forName(args[0]).getDeclaredConstructor().newInstance();
        StoreDriver driver = new StoreDriver(line);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String text = in.readLine(); text != null; text = in.readLine()) {
            JsonObject answer = driver.answer(JsonParser.parseString(text).getAsJsonObject());
            out.println(answer);
            out.flush();
            if (answer.has("halt")) {
                Runtime.getRuntime().halt(137);
            }
        }
        Runtime.getRuntime().halt(0); // the stores leave threads behind
    }

    private JsonObject answer(JsonObject command) {
        JsonObject answer = new JsonObject();
        try {
            run(command, answer);
            answer.addProperty("ok", true);
        } catch (Throwable e) {
            StringWriter text = new StringWriter();
            e.printStackTrace(new PrintWriter(text));
            answer.addProperty("ok", false);
            answer.addProperty("error", text.toString());
        }
        return answer;
    }

    private void run(JsonObject command, JsonObject answer) throws Exception {
        String name = command.get("cmd").getAsString();
        switch (name) {
            case "open" -> open(command, answer);
            case "dump" -> dump(command.get("logFileSize").getAsLong(), answer);
            case "at" -> answer.add("records", at(command.getAsJsonArray("offsets")));
            case "query" -> answer.add("hits", query(command.getAsJsonArray("keys")));
            case "put" -> put(command, answer);
            case "end" -> end(command.getAsJsonArray("ends"), answer);
            case "checks" -> checks(answer);
            case "shutdown" -> line.shutdown();
            case "halt" -> answer.addProperty("halt", true);
            default -> throw new IllegalArgumentException("unknown command " + name);
        }
    }

    private void open(JsonObject command, JsonObject answer) throws Exception {
        Map<String, String> settings = new LinkedHashMap<>();
        command.getAsJsonObject("settings").entrySet().forEach(e -> settings.put(e.getKey(), e.getValue().getAsString()));
        boolean loaded = line.load(settings);
        answer.addProperty("loaded", loaded);
        if (!loaded) {
            return;
        }
        // What recovery alone left, before any thread of the store runs.
        bounds(answer);
        JsonArray times = new JsonArray();
        for (long t : line.checkpoint()) {
            times.add(t);
        }
        answer.add("checkpoint", times);
        line.start();
        settle();
    }

    private void bounds(JsonObject answer) {
        answer.addProperty("minPhysical", line.minPhysical());
        answer.addProperty("maxPhysical", line.maxPhysical());
    }

    /** Waits until nothing is left to dispatch; many looks in a row, since a taken request is no longer seen as waiting. */
    private void settle() throws Exception {
        long deadline = System.currentTimeMillis() + SETTLE_MILLIS;
        for (int quiet = 0; quiet < 20; ) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("dispatch did not come to rest");
            }
            quiet = line.behind() ? 0 : quiet + 1;
            Thread.sleep(15);
        }
    }

    private void dump(long logFileSize, JsonObject answer) throws Exception {
        bounds(answer);
        JsonArray records = new JsonArray();
        long pos = line.minPhysical();
        while (pos < line.maxPhysical()) {
            byte[] rest = line.log(pos);
            if (rest == null || rest.length < 8) {
                throw new IllegalStateException("no record can be read at " + pos + " though the log ends at " + line.maxPhysical());
            }
            ByteBuffer b = ByteBuffer.wrap(rest);
            int size = b.getInt();
            int magic = b.getInt();
            if (magic == BLANK) {
                pos += logFileSize - pos % logFileSize;
                continue;
            }
            if (size <= 0 || size > rest.length) {
                throw new IllegalStateException("record at " + pos + " has size " + size);
            }
            records.add(record(java.util.Arrays.copyOf(rest, size)));
            pos += size;
        }
        answer.add("records", records);
        answer.add("queues", queues());
    }

    private JsonArray queues() throws Exception {
        JsonArray queues = new JsonArray();
        for (Map.Entry<String, List<Integer>> topic : line.queues().entrySet()) {
            for (int id : topic.getValue()) {
                JsonObject q = new JsonObject();
                long min = line.minInQueue(topic.getKey(), id);
                long max = line.maxInQueue(topic.getKey(), id);
                q.addProperty("topic", topic.getKey());
                q.addProperty("queueId", id);
                q.addProperty("min", min);
                q.addProperty("max", max);
                JsonArray units = new JsonArray();
                for (Line.Unit u : line.units(topic.getKey(), id)) {
                    JsonObject unit = new JsonObject();
                    unit.addProperty("index", u.index());
                    unit.addProperty("offset", u.offset());
                    unit.addProperty("size", u.size());
                    unit.addProperty("tagsCode", u.tagsCode());
                    units.add(unit);
                }
                q.add("units", units);
                q.add("got", got(topic.getKey(), id, min, max));
                queues.add(q);
            }
        }
        return queues;
    }

    /** The physical offsets that getMessage gives for each queue offset from min to max; -1 where it gives nothing. */
    private JsonArray got(String topic, int id, long min, long max) throws Exception {
        JsonArray got = new JsonArray();
        for (long at = min; at < max; at++) {
            List<byte[]> records = line.get(topic, id, at, 1).records();
            got.add(records.isEmpty() ? -1L : physicalOffset(records.get(0)));
        }
        return got;
    }

    private JsonArray at(JsonArray offsets) throws Exception {
        JsonArray records = new JsonArray();
        for (JsonElement offset : offsets) {
            byte[] b = line.at(offset.getAsLong());
            records.add(b == null ? com.google.gson.JsonNull.INSTANCE : record(b));
        }
        return records;
    }

    private JsonArray query(JsonArray keys) throws Exception {
        JsonArray all = new JsonArray();
        for (JsonElement e : keys) {
            JsonObject key = e.getAsJsonObject();
            JsonArray hits = new JsonArray();
            for (byte[] b : line.query(key.get("topic").getAsString(), key.get("key").getAsString(), 1000)) {
                hits.add(physicalOffset(b));
            }
            all.add(hits);
        }
        return all;
    }

    private void put(JsonObject command, JsonObject answer) throws Exception {
        List<Line.Message> messages = new ArrayList<>();
        for (JsonElement e : command.getAsJsonArray("messages")) {
            messages.add(message(e.getAsJsonObject()));
        }
        results(line.put(messages, command.has("batch") && command.get("batch").getAsBoolean()), answer);
    }

    private void end(JsonArray ends, JsonObject answer) throws Exception {
        List<Line.Put> puts = new ArrayList<>();
        for (JsonElement e : ends) {
            JsonObject end = e.getAsJsonObject();
            Line.Put put = line.end(end.get("offset").getAsLong(), end.get("commit").getAsBoolean());
            if (put == null) {
                throw new IllegalStateException("no prepared message at " + end.get("offset"));
            }
            puts.add(put);
        }
        results(puts, answer);
    }

    private void checks(JsonObject answer) throws Exception {
        JsonArray checks = new JsonArray();
        for (long[] c : line.checks()) {
            JsonObject check = new JsonObject();
            check.addProperty("groupHash", c[0]);
            check.addProperty("number", c[1]);
            check.addProperty("offset", c[2]);
            check.addProperty("size", c[3]);
            checks.add(check);
        }
        answer.add("checks", checks);
        answer.addProperty("nextNumber", line.nextNumber());
    }

    private void results(List<Line.Put> puts, JsonObject answer) throws Exception {
        JsonArray results = new JsonArray();
        for (Line.Put p : puts) {
            JsonObject r = new JsonObject();
            r.addProperty("status", p.status());
            r.addProperty("ok", p.ok());
            r.addProperty("physicalOffset", p.offset());
            r.addProperty("queueOffset", p.queueOffset());
            r.addProperty("storeSize", p.size());
            r.addProperty("storeTimestamp", p.storeTimestamp());
            r.addProperty("msgId", p.msgId());
            results.add(r);
        }
        answer.add("results", results);
        settle();
        bounds(answer);
    }

    private static Line.Message message(JsonObject m) throws Exception {
        Map<String, String> properties = new LinkedHashMap<>();
        m.getAsJsonObject("properties").entrySet().forEach(e -> properties.put(e.getKey(), e.getValue().getAsString()));
        return new Line.Message(m.get("topic").getAsString(), m.get("queueId").getAsInt(),
            Base64.getDecoder().decode(m.get("body").getAsString()), m.get("flag").getAsInt(), m.get("sysFlag").getAsInt(),
            m.get("bornTimestamp").getAsLong(), host(m.get("bornHost").getAsString()), host(m.get("storeHost").getAsString()),
            m.get("reconsumeTimes").getAsInt(), properties);
    }

    private static InetSocketAddress host(String text) throws Exception {
        int colon = text.lastIndexOf(':');
        String address = text.substring(0, colon).replaceAll("[\\[\\]]", "");
        return new InetSocketAddress(InetAddress.getByName(address), Integer.parseInt(text.substring(colon + 1)));
    }

    /** The decoder's fields of a record and what only its bytes tell. */
    private JsonObject record(byte[] b) throws Exception {
        JsonObject r = line.decode(b);
        r.addProperty("magic", String.format("%08x", ByteBuffer.wrap(b).getInt(4)));
        r.addProperty("recordMd5", md5(b));
        return r;
    }

    private static long physicalOffset(byte[] record) {
        return ByteBuffer.wrap(record).getLong(28);
    }

    static String md5(byte[] b) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("MD5").digest(b));
    }

    /** Text of a host that can be read as one again. */
    static String text(InetSocketAddress host) {
        InetAddress a = host.getAddress();
        if (a.getAddress().length == 4) {
            return a.getHostAddress() + ":" + host.getPort();
        }
        return "[" + a.getHostAddress() + "]:" + host.getPort();
    }
}
