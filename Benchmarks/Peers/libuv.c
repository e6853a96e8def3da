// libuv in C as an expert would write it: a length prefix, one large buffer that all connections read into, the
// messages of a turn of the loop copied together and written at once, large messages written from where they lie.

#include "framing.h"

#include <uv.h>

static struct benchmark_options options;
static uv_loop_t *loop;

static void demand(int status, const char *what) {
    if (status < 0) benchmark_fail(what, uv_strerror(status));
}

// MARK: Connections

struct connection {
    uv_tcp_t tcp;
    struct incoming incoming;
    struct benchmark_receipt receipt;
    uint64_t begun_at;
    /// The messages of this turn, in a buffer that exists only until it is written.
    uint8_t *gathered;
    size_t gathered_count;
    struct connection *next_to_flush;
};

static struct connection *first_to_flush;
/// A buffer that is not in use.
static uint8_t *spare;

static void ignore_closed(uv_handle_t *handle) {
    struct connection *connection = (struct connection *)handle;
    free(connection->incoming.own);
    free(connection->gathered);
    free(connection);
}

static void disconnect(struct connection *connection) { uv_close((uv_handle_t *)connection, ignore_closed); }

static struct connection *new_connection(void) {
    struct connection *connection = calloc(1, sizeof *connection);
    connection->incoming.largest = connection->receipt.size = options.size;
    demand(uv_tcp_init(loop, &connection->tcp), "uv_tcp_init");
    return connection;
}

// MARK: Sending the messages of a turn

struct late_write {
    uv_write_t request;
    uint8_t *bytes;
};

static void on_late_write(uv_write_t *request, int status) {
    demand(status, "uv_write");
    free(((struct late_write *)request)->bytes);
    free(request);
}

/// Writes now what the socket accepts, and the rest when it can. The bytes may change afterwards.
static void write_now(struct connection *connection, const uint8_t *bytes, size_t count) {
    uv_stream_t *stream = (uv_stream_t *)&connection->tcp;
    uv_buf_t buffer = uv_buf_init((char *)bytes, (unsigned)count);
    int written = uv_try_write(stream, &buffer, 1);
    if (written == UV_EAGAIN) written = 0;
    demand(written, "uv_try_write");
    if ((size_t)written == count) return;
    struct late_write *late = allocated(sizeof *late);
    late->bytes = allocated(count - (size_t)written);
    memcpy(late->bytes, bytes + written, count - (size_t)written);
    buffer = uv_buf_init((char *)late->bytes, (unsigned)(count - (size_t)written));
    demand(uv_write(&late->request, stream, &buffer, 1, on_late_write), "uv_write");
}

static void flush(struct connection *connection) {
    write_now(connection, connection->gathered, connection->gathered_count);
    connection->gathered_count = 0;
    if (spare == NULL) spare = connection->gathered;
    else free(connection->gathered);
    connection->gathered = NULL;
}

static void on_end_of_turn(uv_check_t *check) {
    (void)check;
    while (first_to_flush != NULL) {
        struct connection *connection = first_to_flush;
        first_to_flush = connection->next_to_flush;
        if (connection->gathered_count > 0) flush(connection);
    }
}

/// Sends a message that lies after its length prefix.
static void post(struct connection *connection, const uint8_t *payload, size_t length) {
    size_t framed = BENCHMARK_LENGTH_PREFIX + length;
    if (length > SMALL_MESSAGE) return write_now(connection, payload - BENCHMARK_LENGTH_PREFIX, framed);
    if (connection->gathered_count + framed > GATHERED) flush(connection);
    if (connection->gathered == NULL) {
        connection->gathered = spare != NULL ? spare : allocated(GATHERED);
        spare = NULL;
        connection->next_to_flush = first_to_flush;
        first_to_flush = connection;
    }
    memcpy(connection->gathered + connection->gathered_count, payload - BENCHMARK_LENGTH_PREFIX, framed);
    connection->gathered_count += framed;
}

// MARK: Sending as fast as possible

enum { BATCHES = 4 };

/// Messages on their way to all connections.
struct batch {
    struct batch *next;
    int under_way;
    uv_buf_t buffers[MOST_REFERENCED];
    unsigned buffer_count;
    uint8_t *room;
    uv_write_t *requests;
};

static struct benchmark_supply supply;
static struct connection **receivers;
static int receiver_count;
static struct batch *free_batches;
static uv_idle_t sending;

static void on_sending(uv_idle_t *idle);

static void on_batch_written(uv_write_t *request, int status) {
    demand(status, "uv_write");
    struct batch *batch = request->data;
    if (--batch->under_way > 0) return;
    if (free_batches == NULL) uv_idle_start(&sending, on_sending);
    batch->next = free_batches;
    free_batches = batch;
}

static bool fill(struct batch *batch) {
    size_t framed = BENCHMARK_LENGTH_PREFIX + options.size, used = 0;
    bool is_small = options.size <= SMALL_MESSAGE;
    const uint8_t *payload;
    batch->buffer_count = 0;
    while ((used == 0 || used + framed <= GATHERED) && batch->buffer_count < MOST_REFERENCED &&
           (payload = benchmark_supply_next(&supply)) != NULL) {
        char *frame = (char *)payload - BENCHMARK_LENGTH_PREFIX;
        if (is_small) memcpy(batch->room + used, frame, framed);
        else batch->buffers[batch->buffer_count++] = uv_buf_init(frame, (unsigned)framed);
        used += framed;
    }
    if (is_small) batch->buffers[batch->buffer_count++] = uv_buf_init((char *)batch->room, (unsigned)used);
    return used > 0;
}

static void on_sending(uv_idle_t *idle) {
    struct batch *batch = free_batches;
    if (batch == NULL || !fill(batch)) {
        uv_idle_stop(idle);
        return;
    }
    free_batches = batch->next;
    batch->under_way = receiver_count;
    for (int index = 0; index < receiver_count; index++) {
        uv_stream_t *stream = (uv_stream_t *)&receivers[index]->tcp;
        uv_write_t *request = &batch->requests[index];
        demand(uv_write(request, stream, batch->buffers, batch->buffer_count, on_batch_written), "uv_write");
    }
}

static void send_all(void) {
    for (int number = 0; number < BATCHES; number++) {
        struct batch *batch = calloc(1, sizeof *batch);
        batch->room = allocated(GATHERED);
        batch->requests = calloc((size_t)receiver_count, sizeof *batch->requests);
        for (int index = 0; index < receiver_count; index++) batch->requests[index].data = batch;
        batch->next = free_batches;
        free_batches = batch;
    }
    benchmark_supply_begin(&supply, &options);
    uv_idle_init(loop, &sending);
    uv_idle_start(&sending, on_sending);
}

// MARK: Receiving

static struct benchmark_tally tally;
static struct benchmark_trips trips;
static uint64_t resident_before;
static int greeted;

static void count(void *context, const uint8_t *bytes, size_t length) {
    struct connection *connection = context;
    if (!benchmark_receive(&connection->receipt, &tally, bytes, length)) return;
    benchmark_tally_report(&tally);
    write_now(connection, (const uint8_t *)"", 1);
    uv_stop(loop);
}

static void say_resident(void) {
    benchmark_report_resident(resident_before, options.peers);
}

static void answer(void *context, const uint8_t *bytes, size_t length) {
    post(context, bytes, length);
    if (options.work == BENCHMARK_IDLE && ++greeted == options.peers) say_resident();
}

static void connect_one(void);

static void take_answer(void *context, const uint8_t *bytes, size_t length) {
    struct connection *connection = context;
    switch (options.work) {
    case BENCHMARK_ROUND_TRIP:
        if (benchmark_trips_returned(&trips, bytes, length))
            return post(connection, benchmark_trips_next(&trips), options.size);
        benchmark_trips_report(&trips);
        return uv_stop(loop);
    case BENCHMARK_CONNECT:
        benchmark_trips_add(&trips, benchmark_now() - connection->begun_at);
        disconnect(connection);
        if (trips.sample_count < (uint64_t)options.count) return connect_one();
        benchmark_trips_report(&trips);
        return uv_stop(loop);
    default:
        if (++greeted < options.peers) return connect_one();
        say_resident();
        return uv_stop(loop);
    }
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    (void)suggested;
    size_t room;
    buffer->base = (char *)incoming_room(&((struct connection *)handle)->incoming, &room);
    buffer->len = room;
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer) {
    (void)buffer;
    struct connection *connection = (struct connection *)stream;
    if (got == UV_EOF || got == UV_ECONNRESET) return disconnect(connection);
    demand((int)got, "read");
    if (got == 0) return;
    bool receives = options.work == BENCHMARK_STREAM || options.work == BENCHMARK_BROADCAST;
    if (receives && options.serves == (options.work == BENCHMARK_STREAM)) {
        incoming_read(&connection->incoming, (size_t)got, count, connection);
    } else if (receives) {
        benchmark_supply_report(&supply);
        uv_stop(loop);
    } else if (options.serves) {
        incoming_read(&connection->incoming, (size_t)got, answer, connection);
    } else {
        incoming_read(&connection->incoming, (size_t)got, take_answer, connection);
    }
}

// MARK: Both sides

static void on_connection(uv_stream_t *listener, int status) {
    demand(status, "listen");
    struct connection *connection = new_connection();
    demand(uv_accept(listener, (uv_stream_t *)connection), "accept");
    uv_tcp_nodelay(&connection->tcp, 1);
    demand(uv_read_start((uv_stream_t *)connection, on_room, on_read), "read");
    if (options.work != BENCHMARK_BROADCAST) return;
    receivers[receiver_count++] = connection;
    if (receiver_count == options.peers) send_all();
}

static void serve(void) {
    static uv_tcp_t listener;
    struct sockaddr_in address;
    int length = sizeof address;
    receivers = calloc((size_t)options.peers, sizeof *receivers);
    uv_ip4_addr("127.0.0.1", 0, &address);
    demand(uv_tcp_init(loop, &listener), "uv_tcp_init");
    demand(uv_tcp_bind(&listener, (struct sockaddr *)&address, 0), "bind");
    demand(uv_listen((uv_stream_t *)&listener, 4096, on_connection), "listen");
    demand(uv_tcp_getsockname(&listener, (struct sockaddr *)&address, &length), "getsockname");
    benchmark_report_port_number(ntohs(address.sin_port));
}

static void on_connected(uv_connect_t *request, int status) {
    demand(status, "connect");
    struct connection *connection = (struct connection *)request->handle;
    free(request);
    uv_tcp_nodelay(&connection->tcp, 1);
    demand(uv_read_start((uv_stream_t *)connection, on_room, on_read), "read");
    switch (options.work) {
    case BENCHMARK_STREAM:
        receivers[receiver_count++] = connection;
        return send_all();
    case BENCHMARK_BROADCAST: return;
    default: return post(connection, benchmark_trips_next(&trips), options.size);
    }
}

static void connect_one(void) {
    struct connection *connection = new_connection();
    struct sockaddr_in address;
    connection->begun_at = benchmark_now();
    uv_ip4_addr("127.0.0.1", atoi(options.port), &address);
    uv_connect_t *request = allocated(sizeof *request);
    demand(uv_tcp_connect(request, &connection->tcp, (struct sockaddr *)&address, on_connected), "connect");
}

int main(int argument_count, char **arguments) {
    options = benchmark_begin(argument_count, arguments);
    loop = uv_default_loop();
    uv_check_t end_of_turn;
    uv_check_init(loop, &end_of_turn);
    uv_check_start(&end_of_turn, on_end_of_turn);
    uv_unref((uv_handle_t *)&end_of_turn);
    tally.peers = options.work == BENCHMARK_BROADCAST ? options.peers : 1;
    resident_before = benchmark_resident();
    if (options.serves) {
        serve();
    } else {
        if (options.work != BENCHMARK_STREAM && options.work != BENCHMARK_BROADCAST)
            benchmark_trips_begin(&trips, &options);
        receivers = calloc(1, sizeof *receivers);
        for (int index = 0; index < (options.work == BENCHMARK_BROADCAST ? options.peers : 1); index++) connect_one();
    }
    uv_run(loop, UV_RUN_DEFAULT);
    return 0;
}
