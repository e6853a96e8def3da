import Glibc
import NighCore
import NighTestKit
import NighUV
import Testing

/// Tests who closes the descriptors of dials. The conformance suite checks that each dial ends as it must.
struct SocketDialsTests {
    /// Dials on a loop of their own, and what they report.
    ///
    /// `@unchecked Sendable`: confined to the loop, except for what the monitor guards.
    private final class Ground: @unchecked Sendable {
        let loop = UVEventLoop()
        private let monitor = Monitor()
        private var outcomes: [String] = []
        private var dials: SocketDials!
        private(set) var otherDials: Dials<String>!

        init() {
            loop.call { [self] in
                dials = SocketDials(scheme: "unix", on: loop) { [unowned self] dial, outcome in
                    switch outcome {
                    case .success: note("\(dial.number): opened")
                    case .failure(let error): note("\(dial.number): \(error.cause)")
                    }
                }
                otherDials = Dials<String>(scheme: "any", on: loop) { [unowned self] dial, outcome in
                    note("\(dial.number): \((try? outcome.get()) ?? "failed")")
                }
            }
        }

        deinit { loop.shutdown() }

        /// Calls `body` on the loop.
        func call(_ body: @escaping (SocketDials) -> Void) { loop.call { [self] in body(dials) } }

        func note(_ words: String) { monitor.change { outcomes.append(words) } }

        func wait(for words: String) -> Bool {
            monitor.wait(within: .seconds(20)) { outcomes.contains(words) }
        }

        var notes: [String] { monitor.read { outcomes } }
    }

    private static func dial(_ dials: SocketDials, _ number: UInt64, with descriptor: Int32) {
        UnixTransport.withAddress("nobody") {
            dials.dial(DialID(number: number), with: descriptor, to: $0, timeout: .seconds(20))
        }
    }

    @Test func `A dial that fails, is cancelled, or ends with all others closes its descriptor`() {
        let pairs = (0..<3).map { _ in SocketPair() }
        let ground = Ground()
        ground.call { dials in
            for (number, pair) in pairs.enumerated() { Self.dial(dials, UInt64(number), with: pair.near) }
            dials.cancel(DialID(number: 1))
        }
        #expect(ground.wait(for: "0: nobody listens there"))
        ground.call { $0.cancelAll() }
        for pair in pairs { #expect(pair.far.isAtEnd) }
        #expect(!ground.notes.contains { $0.hasPrefix("1: ") })
    }

    @Test func `A refused dial is reported once, in a later turn, unless it is cancelled before`() {
        let ground = Ground()
        let error = NighError(.connecting, .invalid("address"), transport: "unix")
        ground.call { dials in
            for number: UInt64 in 1...3 { dials.refuse(DialID(number: number), error) }
            dials.cancel(DialID(number: 2))
        }
        #expect(ground.wait(for: "3: invalid address"))
        #expect(ground.notes == ["1: invalid address", "3: invalid address"])
    }

    @Test func `A dial of another kind ends once, within its timeout, and is stopped unless it has opened`() {
        let ground = Ground()
        ground.call { [unowned ground] _ in
            let dials = ground.otherDials!
            for number: UInt64 in 1...4 {
                let id = DialID(number: number)
                dials.begin(id, timeout: number == 4 ? .milliseconds(1) : nil)
                dials.follow(id) {
                    ground.note("4 is late")
                    return NighError(.connecting, .silent)
                } stop: {
                    ground.note("\(number) stops")
                }
            }
            dials.end(DialID(number: 1), .success("opened"))
            dials.end(DialID(number: 1), .success("opened again"))
            dials.end(DialID(number: 2), .failure(NighError(.connecting, .full)))
            dials.cancel(DialID(number: 3))
            if dials.isInProgress(DialID(number: 4)), !dials.isInProgress(DialID(number: 3)) {
                ground.note("4 is under way")
            }
        }
        #expect(ground.wait(for: "4: failed"))
        #expect(
            ground.notes == [
                "1: opened", "2 stops", "2: failed", "3 stops", "4 is under way", "4 is late", "4 stops",
                "4: failed",
            ])
    }

    @Test func `Without a descriptor a dial fails with that reason, and without a listener as refused`() {
        let ground = Ground()
        ground.call { dials in
            errno = EMFILE
            Self.dial(dials, 1, with: -1)
            Self.dial(dials, 2, with: UnixTransport.socket())
        }
        #expect(ground.wait(for: "1: \(SocketFault(EMFILE).cause)"))
        #expect(ground.wait(for: "2: nobody listens there"))
    }
}
