import Glibc
import NighCore
import NighTestKit
import NighUV
import Testing

/// Tests who closes the descriptors of dials. The conformance suite checks that each dial ends as it must.
@Suite struct SocketDialsTests {
    /// Runs dials on a loop. `@unchecked Sendable`: confined to the loop, except for what the monitor guards.
    private final class Caller: @unchecked Sendable {
        let loop = UVEventLoop()
        private let monitor = Monitor()
        private var outcomes: [String] = []
        private var hasCalled = false
        private(set) var dials: SocketDials?
        var otherDials: Dials<String>?

        deinit { loop.shutdown() }

        /// Creates the dials, and calls `body` on the loop.
        func call(_ body: @escaping @Sendable (SocketDials) -> Void) {
            loop.execute { [self] in
                let dials = SocketDials(scheme: "unix", on: loop) { [unowned self] dial, outcome in
                    let words: String
                    switch outcome {
                    case .success: words = "opened"
                    case .failure(let error): words = "\(error.cause)"
                    }
                    note("\(dial.number): \(words)")
                }
                self.dials = dials
                body(dials)
                monitor.change { hasCalled = true }
            }
            _ = monitor.wait(within: .seconds(20)) { hasCalled }
        }

        func note(_ words: String) { monitor.change { outcomes.append(words) } }

        func waitFor(_ words: String) -> Bool {
            monitor.wait(within: .seconds(20)) { outcomes.contains(words) }
        }

        var all: [String] { monitor.read { outcomes } }
    }

    /// A pair of sockets. One end is used for a dial; the other shows whether that end was closed.
    private static func pair() throws -> (near: Int32, far: Int32) {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        return (ends[0], ends[1])
    }

    private static func dial(_ dials: SocketDials, _ number: UInt64, with descriptor: Int32) {
        UnixTransport.withAddress("nobody") {
            dials.dial(DialID(number: number), with: descriptor, to: $0, timeout: .seconds(20))
        }
    }

    @Test("A dial that fails, is cancelled, or ends with all others closes its descriptor")
    func closesSurviveARoundTrip() throws {
        let ends = try (0..<3).map { _ in try Self.pair() }
        defer { for end in ends { close(end.far) } }
        let caller = Caller()
        caller.call { dials in
            for (number, end) in ends.enumerated() { Self.dial(dials, UInt64(number), with: end.near) }
            dials.cancel(DialID(number: 1))
        }
        #expect(caller.waitFor("0: nobody listens there"))
        caller.call { $0.cancelAll() }
        for end in ends {
            var byte: UInt8 = 0
            #expect(read(end.far, &byte, 1) == 0, "the end of the stream")
        }
        #expect(!caller.all.contains { $0.hasPrefix("1: ") })
    }

    @Test("A refused dial is reported once, in a later turn, unless it is cancelled before")
    func refused() {
        let caller = Caller()
        let error = NighError(.connecting, .invalid("address"), transport: "unix")
        caller.call { dials in
            for number: UInt64 in 1...3 { dials.refuse(DialID(number: number), error) }
            dials.cancel(DialID(number: 2))
        }
        #expect(caller.waitFor("3: invalid address"))
        #expect(caller.all == ["1: invalid address", "3: invalid address"])
    }

    @Test("A dial of another kind ends once, within its timeout, and is cancelled unless it has opened")
    func ofAnotherKind() {
        let caller = Caller()
        caller.call { _ in
            let dials = Dials<String>(scheme: "any", on: caller.loop) { [unowned caller] dial, outcome in
                caller.note("\(dial.number): \((try? outcome.get()) ?? "failed")")
            }
            caller.otherDials = dials
            for number: UInt64 in 1...4 {
                let id = DialID(number: number)
                dials.begin(id, timeout: number == 4 ? .milliseconds(1) : nil)
                dials.follow(id) {
                    caller.note("4 is late")
                    return NighError(.connecting, .silent)
                } stop: {
                    caller.note("\(number) stops")
                }
            }
            dials.end(DialID(number: 1), .success("opened"))
            dials.end(DialID(number: 1), .success("opened again"))
            dials.end(DialID(number: 2), .failure(NighError(.connecting, .full)))
            dials.cancel(DialID(number: 3))
            if dials.isInProgress(DialID(number: 4)), !dials.isInProgress(DialID(number: 3)) {
                caller.note("4 is under way")
            }
        }
        #expect(caller.waitFor("4: failed"))
        #expect(
            caller.all == [
                "1: opened", "2 stops", "2: failed", "3 stops", "4 is under way", "4 is late", "4 stops",
                "4: failed",
            ])
    }

    @Test("Without a descriptor a dial fails with that reason; without a listener, with that nobody listens")
    func nowhere() {
        let caller = Caller()
        caller.call { dials in
            errno = EMFILE
            Self.dial(dials, 1, with: -1)
            Self.dial(dials, 2, with: UnixTransport.socket())
        }
        #expect(caller.waitFor("1: \(SocketFault(EMFILE).cause)"))
        #expect(caller.waitFor("2: nobody listens there"))
    }
}
