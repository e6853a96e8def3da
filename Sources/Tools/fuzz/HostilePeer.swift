import NighCalls
import NighCore

/// What a hostile peer does with the calls that it gets, and with the streams that are opened to it.
///
/// `@unchecked Sendable`: used on one virtual loop.
final class HostilePeer: ActorHost, @unchecked Sendable {
    private var mutator: Mutator
    private let material: ActorTarget.Material
    private let clock: any Clock<Duration>
    private var streams: [ByteStream] = []
    /// The number of streams of values that have come.
    private(set) var values = 0

    init(_ mutator: Mutator, _ material: ActorTarget.Material, clock: any Clock<Duration>) {
        self.mutator = mutator
        self.material = material
        self.clock = clock
    }

    func answer(_ call: ActorCall) async -> CallOutcome {
        let right = Array("\u{64}name".utf8)
        let bytes = mutator.oneIn(2) ? right : mutator.pick(material.arguments)
        let content = ByteSlice(mutator.perhapsChanged(bytes, with: material.arguments))
        switch mutator.number(below: 8) {
        case 0...3: return .answer(content)
        case 4: return .error(content)
        case 5: return .refused(mutator.pick(CallRefusal.allCases), mutator.pick(material.pieces))
        case 6: return .unknownName
        default:
            // It may be cancelled.
            try? await clock.sleep(for: .seconds(20))
            return .answer(content)
        }
    }

    func receive(_ stream: ByteStream) {
        if stream.name.first == ActorStream.values { values += 1 }
        streams.append(stream)
        if streams.count > 20 { streams.removeFirst() }
    }

    /// Reads from a stream that was opened to it, writes to it, or ends it.
    func useStream(_ mutator: inout Mutator) {
        guard !streams.isEmpty else { return }
        let stream = streams.remove(at: mutator.number(below: streams.count))
        switch mutator.number(below: 4) {
        case 0: stream.cancel(because: mutator.pick(material.pieces))
        case 1: stream.finish()
        case 2: _ = try? stream.tryWrite(ByteSlice(mutator.bytes(mutator.pick([1, 50, 3_000]))))
        default: while case .bytes = stream.poll() {}
        }
        streams.append(stream)
    }

    func handle(_ event: SessionEvent) {}
    func sessionDidClose() { streams = [] }
}
