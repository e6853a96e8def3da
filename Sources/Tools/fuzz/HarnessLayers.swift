import NighCalls
import NighChannels
import NighCore
import NighTestKit

/// The channels and the questions of the session in a harness, and what its program does with them.
///
/// `@unchecked Sendable`: confined to the thread that runs the loop.
final class HarnessLayers: @unchecked Sendable {
    private let loop: VirtualEventLoop
    private let channels = Channels()
    private let calls = Calls()
    private var port: ChannelPort?
    private var tasks: [Int: Task<Void, Never>] = [:]
    private var taskCount = 0
    /// The streams that stand for the layers of a session which has none.
    private var streams: [ByteStream] = []
    private var lastRequest: UInt64 = 0
    /// How many messages of channels and answers to questions have come.
    private(set) var messages = 0
    private(set) var answers = 0

    init(on loop: VirtualEventLoop) { self.loop = loop }

    /// The layers for a session. Questions it has in any case; channels with `hasChannels`.
    func make(hasChannels: Bool) -> [any SessionLayer] {
        // It fails only if the name is answered already.
        try? calls.answer("echo") { content, _ in .answer(content) }
        return hasChannels ? [channels, calls] : [calls]
    }

    /// Opens the channel, or closes it.
    func toggleChannel() {
        if let open = port {
            channels.close(open)
            port = nil
        } else {
            // A session that has closed, or that has no channels, opens none.
            port = try? channels.open("red")
        }
    }

    func sendInChannel(to peer: Peer) {
        guard let port else { return }
        start { _ in try? await port.send(ByteSlice([UInt8](repeating: 0x52, count: 3_000)), to: peer) }
    }

    func readChannel() { while port?.poll() != nil { messages += 1 } }

    /// Asks what the peer answers at once, and what it does not know.
    func ask(_ peer: Peer) {
        for name in ["echo", "nobody"] {
            start { [calls] layers in
                let outcome = try? await calls.call(
                    name, ByteSlice([1, 2, 3]), at: peer, timeout: .seconds(5))
                if outcome != nil { layers.answers += 1 }
            }
        }
    }

    func cancelTasks() { for (_, task) in tasks.sorted(by: { $0.key < $1.key }) { task.cancel() } }

    private func start(_ work: @escaping @Sendable (HarnessLayers) async -> Void) {
        // The peer may be gone, or support none of it: a program must handle both.
        guard tasks.count < 20 else { return }
        taskCount += 1
        let number = taskCount
        tasks[number] = Task(executorPreference: loop) { [self] in
            await work(self)
            tasks[number] = nil
        }
    }

    // MARK: Streams of a session without the layer

    /// Takes a stream for a channel or for calls, which the program writes to itself.
    func use(_ stream: ByteStream) {
        streams.append(stream)
        lastRequest = stream.purpose == .calls ? 0 : lastRequest
    }

    /// Writes a message to each of those streams.
    func writeStreams() {
        for stream in streams {
            let message: ByteSlice
            if stream.purpose == .calls {
                lastRequest += 1
                message =
                    CallRecord.request(
                        number: lastRequest, timeout: 3_000, name: "echo", content: ByteSlice([4, 5])
                    ).frame
            } else {
                message = ByteSlice(StreamMessageParser.header(of: 5), then: ByteSlice([1, 2, 3, 4, 5]))
            }
            // The other side may have refused it. A part of a message is another input.
            _ = try? stream.tryWrite(message)
            while case .bytes = stream.poll() {}
        }
    }

    func dropStreams() { streams = [] }

    /// Throws a finding if something is left after the session has closed.
    func checkEnd() throws {
        guard tasks.isEmpty else { throw Finding("\(tasks.count) tasks wait for a session that has closed") }
        guard calls.counts == (0, 0, 0) else { throw Finding("calls are left: \(calls.counts)") }
    }
}
