// gRPC: one call at a time, many at once, and messages there and back over one bidirectional stream. By measurement,
// each uses the API that is fastest for it: the server a completion queue with one thread; the client the same for one
// call at a time, callbacks for many at once, and the synchronous API for the stream.

#include "identity.h"

#include "calls.grpc.pb.h"

#include <absl/synchronization/mutex.h>
#include <functional>
#include <grpcpp/grpcpp.h>
#include <latch>
#include <memory>
#include <openssl/pem.h>
#include <string>
#include <vector>

namespace {

using benchmark::Echo;
using benchmark::Payload;

benchmark_options options;
bool is_encrypted;

void demand(bool is_good, const char *what, const std::string &why = "failed") {
    if (!is_good) benchmark_fail(what, why.c_str());
}

const uint8_t *bytes(const Payload &payload) { return reinterpret_cast<const uint8_t *>(payload.content().data()); }

// MARK: Credentials

/// Returns the text that `write` writes.
std::string pem(const std::function<int(BIO *)> &write) {
    BIO *memory = BIO_new(BIO_s_mem());
    demand(memory != nullptr && write(memory) == 1, "a certificate", "cannot be written");
    char *text;
    long length = BIO_get_mem_data(memory, &text);
    std::string copy(text, static_cast<size_t>(length));
    BIO_free(memory);
    return copy;
}

/// The key and the certificate that both sides show and trust.
struct Proof {
    std::string key, certificate;

    Proof() {
        identity own = identity_of(edwards_key(), nullptr);
        key = pem([&](BIO *to) {
            return PEM_write_bio_PKCS8PrivateKey(to, own.key, nullptr, nullptr, 0, nullptr, nullptr);
        });
        certificate = pem([&](BIO *to) { return PEM_write_bio_X509(to, own.certificate); });
    }
};

std::shared_ptr<grpc::ServerCredentials> server_credentials() {
    if (!is_encrypted) return grpc::InsecureServerCredentials();
    Proof proof;
    grpc::SslServerCredentialsOptions settings(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    settings.pem_root_certs = proof.certificate;
    settings.pem_key_cert_pairs = {{proof.key, proof.certificate}};
    return grpc::SslServerCredentials(settings);
}

std::shared_ptr<grpc::Channel> connected() {
    grpc::ChannelArguments arguments;
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
    if (is_encrypted) {
        Proof proof;
        credentials = grpc::SslCredentials(
            {.pem_root_certs = proof.certificate, .pem_private_key = proof.key, .pem_cert_chain = proof.certificate});
        arguments.SetSslTargetNameOverride(identity_name);
    }
    auto channel = grpc::CreateCustomChannel(std::string("127.0.0.1:") + options.port, credentials, arguments);
    auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(10);
    demand(channel->WaitForConnected(deadline), "a connection", "was not made");
    return channel;
}

// MARK: The server

Echo::AsyncService service;
benchmark_called called;

/// Waits in a completion queue for one thing at a time.
class Waiting {
public:
    virtual ~Waiting() = default;
    /// Continues. `is_good` is false if what it waited for will not come.
    virtual void go_on(bool is_good) = 0;

protected:
    /// The tag that the queue is given, and gives back.
    void *tag() { return static_cast<Waiting *>(this); }
};

/// A call, from when the server is ready for it until it is answered.
class Call final : public Waiting {
public:
    explicit Call(grpc::ServerCompletionQueue *queue) : queue(queue), writer(&context) {
        service.RequestCall(&context, &request, &writer, queue, queue, tag());
    }

    void go_on(bool is_good) override {
        if (is_answered) {
            delete this;
            return;
        }
        demand(is_good, "a call");
        new Call(queue);
        benchmark_call_received(&called, bytes(request), request.content().size());
        is_answered = true;
        writer.Finish(request, grpc::Status::OK, tag());
    }

private:
    grpc::ServerCompletionQueue *queue;
    grpc::ServerContext context;
    Payload request;
    grpc::ServerAsyncResponseWriter<Payload> writer;
    bool is_answered = false;
};

/// A stream whose messages the server sends back.
class Exchange final : public Waiting {
public:
    explicit Exchange(grpc::ServerCompletionQueue *queue) : stream(&context) {
        service.RequestExchange(&context, &stream, queue, queue, tag());
    }

    void go_on(bool is_good) override {
        if (has_ended || (!is_reading && !is_good)) return;
        has_ended = is_reading && !is_good;
        if (has_ended) return stream.Finish(grpc::Status::OK, tag());
        is_reading = !is_reading;
        if (is_reading) stream.Read(&message, tag());
        else stream.Write(message, tag());
    }

private:
    grpc::ServerContext context;
    Payload message;
    grpc::ServerAsyncReaderWriter<Payload, Payload> stream;
    bool is_reading = false, has_ended = false;
};

void serve() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", server_credentials(), &port);
    builder.RegisterService(&service);
    auto queue = builder.AddCompletionQueue();
    auto server = builder.BuildAndStart();
    demand(server != nullptr && port != 0, "a server", "cannot be started");
    called.size = options.size;
    for (int index = 0; index < BENCHMARK_AT_ONCE; index++) new Call(queue.get());
    Exchange exchange(queue.get());
    benchmark_report_port_number(port);
    void *waiting;
    bool is_good;
    while (queue->Next(&waiting, &is_good)) static_cast<Waiting *>(waiting)->go_on(is_good);
}

// MARK: The client

void call_one_at_a_time() {
    auto stub = Echo::NewStub(connected());
    grpc::CompletionQueue queue;
    Payload request, reply;
    benchmark_trips trips;
    benchmark_trips_begin(&trips, &options);
    do {
        grpc::ClientContext context;
        grpc::Status status;
        void *tag;
        bool is_good;
        request.set_content(benchmark_trips_next(&trips), options.size);
        auto call = stub->AsyncCall(&context, request, &queue);
        call->Finish(&reply, &status, nullptr);
        demand(queue.Next(&tag, &is_good) && is_good && status.ok(), "a call", status.error_message());
    } while (benchmark_trips_returned(&trips, bytes(reply), reply.content().size()));
    benchmark_trips_report(&trips);
}

void exchange() {
    auto stub = Echo::NewStub(connected());
    grpc::ClientContext context;
    auto stream = stub->Exchange(&context);
    Payload message;
    benchmark_trips trips;
    benchmark_trips_begin(&trips, &options);
    do {
        message.set_content(benchmark_trips_next(&trips), options.size);
        demand(stream->Write(message) && stream->Read(&message), "a stream", "ended");
    } while (benchmark_trips_returned(&trips, bytes(message), message.content().size()));
    benchmark_trips_report(&trips);
}

benchmark_calls calls;
std::latch calls_under_way(BENCHMARK_AT_ONCE);

/// Makes one call after the other.
class Caller {
public:
    explicit Caller(Echo::Stub *stub) : stub(stub) {}

    void make_next() {
        content = benchmark_calls_next(&calls);
        if (content == nullptr) return calls_under_way.count_down();
        context = std::make_unique<grpc::ClientContext>();
        request.set_content(content, options.size);
        stub->async()->Call(context.get(), &request, &reply, [this](const grpc::Status &status) {
            demand(status.ok(), "a call", status.error_message());
            benchmark_calls_answered(&calls, content, bytes(reply), reply.content().size());
            make_next();
        });
    }

private:
    Echo::Stub *stub;
    std::unique_ptr<grpc::ClientContext> context;
    Payload request, reply;
    const uint8_t *content = nullptr;
};

void call_at_once() {
    auto stub = Echo::NewStub(connected());
    std::vector<Caller> callers;
    callers.reserve(BENCHMARK_AT_ONCE);
    benchmark_calls_begin(&calls, &options);
    for (int index = 0; index < BENCHMARK_AT_ONCE; index++) callers.emplace_back(stub.get()).make_next();
    calls_under_way.wait();
    benchmark_calls_report(&calls);
}

}  // namespace

int main(int argument_count, char **arguments) {
    options = benchmark_begin(argument_count, arguments);
    // Debian's library looks for deadlocks whenever it locks a mutex. Without that, calls take a tenth less.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    std::string way = options.way;
    is_encrypted = way.ends_with("-tls");
    bool is_stream = way.starts_with("stream");
    if (options.work != BENCHMARK_ROUND_TRIP && options.work != BENCHMARK_CALLS_AT_ONCE)
        benchmark_unsupported("it only makes calls");
    if (options.serves) serve();
    else if (options.work == BENCHMARK_CALLS_AT_ONCE) call_at_once();
    else if (is_stream) exchange();
    else call_one_at_a_time();
}
