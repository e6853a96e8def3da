import NATSServers
import NighBroker
import NighCore
import NighMemory
import NighTestKit
import Testing

@testable import NighNATS

/// One pipe beside a hundred that are busy and one whose reader has paused.
@Suite struct BusyPipesTests {
    private static let busyCount = 100

    /// One side. The dialling one keeps the busy pipes full and asks on the last one; the other side reads and echoes.
    ///
    /// `@unchecked Sendable`: confined to its loop, but for what the monitor guards.
    private final class Side: TransportEventHandler, PipeHandler, @unchecked Sendable {
        let loop = ThreadEventLoop()
        let monitor = Monitor()
        private let transport: any Transport
        private let echoes: Bool
        private let block = ByteSlice([UInt8](repeating: 7, count: 64 << 10))
        private var pipes: [any Pipe] = []
        private(set) var address: TransportAddress?
        private(set) var openCount = 0
        private(set) var answers: [Moment.Span] = []
        private(set) var received = 0
        private var askedAt = Moment(nanoseconds: 0)

        init(_ options: NATSOptions, echoes: Bool) {
            transport = NATSTransport.make(options)
            self.echoes = echoes
            loop.execute { [self] in
                transport.start(on: loop, events: self)
                guard echoes else { return }
                let peer = Identity.ephemeral(seed: 1).peerID
                transport.advertise(
                    Advertisement(service: "busy", peer: peer, name: DisplayName(fitting: "Echo")))
            }
        }

        /// Opens the pipes one after another, so that each side knows the first as the paused one and the last as the
        /// one that is asked.
        func dial(_ address: TransportAddress) {
            self.address = address
            loop.execute { [self] in dialNext() }
        }

        private func dialNext() {
            guard let address, openCount < BusyPipesTests.busyCount + 2 else { return }
            transport.dial(address, as: DialID(number: UInt64(openCount)), timeout: .seconds(20))
        }

        func handle(_ event: TransportEvent, by transport: any Transport) {
            switch event {
            case .pipeOpened(let pipe, _): begin(pipe)
            case .listeningChanged(let addresses): monitor.change { address = addresses.first }
            default: break
            }
        }

        private func begin(_ pipe: any Pipe) {
            pipes.append(pipe)
            pipe.start(handler: self)
            if echoes, pipes.count == 1 { pipe.pauseReading() }
            monitor.change { openCount += 1 }
            if !echoes { dialNext() }
        }

        private func fill(_ pipe: any Pipe) {
            while pipe.writableBytes > 0 {
                var queue = ByteQueue()
                queue.append(block)
                pipe.write(&queue)
            }
        }

        func beginWriting() {
            loop.execute { [self] in
                for pipe in pipes.dropLast() { fill(pipe) }
                ask()
            }
        }

        private func ask() {
            askedAt = loop.now
            write([1], to: pipes[pipes.count - 1])
        }

        private func write(_ bytes: [UInt8], to pipe: any Pipe) {
            var queue = ByteQueue()
            queue.append(ByteSlice(bytes))
            pipe.write(&queue)
        }

        func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
            guard pipe === pipes.last else {
                received += bytes.count
                return
            }
            guard !echoes else { return write(bytes.bytes, to: pipe) }
            monitor.change { answers.append(loop.now - askedAt) }
            ask()
        }

        func pipeBecameWritable(_ pipe: any Pipe) { if !echoes { fill(pipe) } }
        func pipeEnded(_ pipe: any Pipe) {}
        func pipeClosed(_ pipe: any Pipe, error: NighError?) {}
        func pipeDrained(_ pipe: any Pipe) {}

        func end() {
            loop.call { [self] in transport.shutdown() }
            loop.shutdown()
        }
    }

    @Test func `neither busy pipes nor a paused reader hold up another pipe, and the server stays connected`()
        throws
    {
        // A server that would end a connection for which so much waits.
        let server = try NATSServer(.debian, "max_pending: 67108864")
        let options = NATSOptions(servers: [try ServerAddress(parsing: server.address)])
        let echo = Side(options, echoes: true)
        let asking = Side(options, echoes: false)
        defer {
            asking.end()
            echo.end()
        }
        #expect(echo.monitor.wait(within: .seconds(30)) { echo.address != nil })
        asking.dial(try #require(echo.monitor.read { echo.address }))
        let all = Self.busyCount + 2
        #expect(asking.monitor.wait(within: .seconds(60)) { asking.openCount == all })
        #expect(echo.monitor.wait(within: .seconds(60)) { echo.openCount == all })
        asking.beginWriting()
        #expect(asking.monitor.wait(within: .seconds(60)) { asking.answers.count >= 50 })
        let sorted = asking.monitor.read { asking.answers.sorted() }
        print("round trips beside busy pipes: median \(sorted[sorted.count / 2]), longest \(sorted.last!)")
        #expect(sorted[sorted.count / 2] < .seconds(2))
        #expect(!server.log.contains("Slow Consumer"))
    }
}
