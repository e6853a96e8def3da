import Glibc
import NighTestKit
import NighUV
import Testing

@testable import NighCore
@testable import NighWeb

@Suite("A guest at the server") struct WebGuestTests {
    private static func guest(
        _ server: Server, _ key: Int = 1, from source: UInt32 = 1
    ) throws -> Browser {
        let browser = Browser(server.port, from: source)
        try #require(browser.upgrade()?.status == 101)
        try #require(browser.enter(key, server.invite()).first == 1)
        return browser
    }

    private static func peer(_ key: Int) throws -> PeerID {
        try #require(GuestEntry([1] + Browser.key(key))).peer
    }

    // MARK: The upgrade

    @Test("gets a WebSocket that speaks Nigh")
    func upgrade() throws {
        let server = Server()
        defer { server.stop() }
        let answer = try #require(Browser(server.port).upgrade())
        #expect(answer.status == 101 && answer.headers["sec-websocket-protocol"] == "nigh.1")
        #expect(answer.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        #expect(answer.headers["sec-websocket-extensions"] == nil)
    }

    @Test(
        "gets none if something is missing",
        arguments: ["Upgrade", "Connection", "Sec-WebSocket-Version", "Sec-WebSocket-Protocol"])
    func notUpgraded(header: String) throws {
        let server = Server()
        defer { server.stop() }
        let browser = Browser(server.port)
        let answer = try #require(browser.upgrade(without: header))
        #expect(answer.status == 426 && answer.headers["upgrade"] == "websocket")
        #expect(browser.isAtEnd)
        #expect(Browser(server.port).upgrade(without: "Sec-WebSocket-Key")?.status == 400)
    }

    @Test(
        "gets none from a page of somebody else",
        arguments: [
            "http://evil.example", "null", "https://127.0.0.1:PORT", "http://localhost:PORT",
            "http://127.0.0.1",
        ])
    func foreignOrigin(origin: String) throws {
        let server = Server()
        defer { server.stop() }
        let browser = Browser(server.port)
        #expect(browser.upgrade(origin: origin.replacing("PORT", with: "\(browser.port)"))?.status == 403)
        #expect(browser.isAtEnd)
    }

    @Test("gets none under a name that leads here and is not this machine's")
    func rebinding() throws {
        let server = Server()
        defer { server.stop() }
        let browser = Browser(server.port)
        let name = "evil.example:\(browser.port)"
        #expect(browser.upgrade(host: name, origin: "http://\(name)")?.status == 403)
        #expect(browser.isAtEnd)
    }

    @Test("loads the page and opens the WebSocket on one connection")
    func sameConnection() throws {
        let server = Server()
        defer { server.stop() }
        let browser = Browser(server.port)
        #expect(browser.request("/")?.status == 200)
        #expect(browser.upgrade()?.status == 101)
        #expect(browser.enter(1, server.invite()).first == 1)
    }

    @Test("may send its first message right behind the upgrade")
    func early() throws {
        let server = Server()
        defer { server.stop() }
        let browser = Browser(server.port)
        let headers = ["GET /nigh HTTP/1.1", "Host: \(browser.name)"] + Browser.upgradeHeaders + ["", ""]
        let entry = BrowserFrames.binary([1] + Browser.key(1) + server.invite())
        browser.send(Array(headers.joined(separator: "\r\n").utf8) + entry + BrowserFrames.binary([5, 6]))
        #expect(browser.readAnswer()?.status == 101)
        #expect(browser.readFrame()?.payload.first == 1)
        #expect(server.wait { server.pipes.first?.bytes == [5, 6] })
    }

    // MARK: Entering

    @Test("comes in with a token, and learns its PeerID and whose guest it is")
    func enters() throws {
        let server = Server()
        defer { server.stop() }
        let browser = Browser(server.port)
        browser.upgrade()
        let answer = browser.enter(1, server.invite())
        let guest = try Self.peer(1)
        #expect(answer == GuestAnswer.entered(guest, Server.advertisement).bytes)
        #expect(server.guests.map(\.id) == [guest] && server.guests.first?.isHere == true)
        #expect(server.guests.first?.address == "127.0.0.1")
        #expect(server.pipes.isEmpty)
        browser.sendFrame(2, [1, 2, 3])
        #expect(server.wait { server.pipes.first?.bytes == [1, 2, 3] })
        #expect(server.pipes.first?.guest == guest)
    }

    @Test("may send its first message in pieces")
    func entersInPieces() throws {
        let server = Server()
        defer { server.stop() }
        let browser = Browser(server.port)
        browser.upgrade()
        let message = [1] + Browser.key(1) + server.invite()
        for (index, byte) in message.enumerated() {
            browser.sendFrame(index == 0 ? 2 : 0, [byte], isLast: index == message.count - 1)
        }
        #expect(browser.readFrame()?.payload.first == 1)
    }

    @Test("is refused with a token that is wrong or used, and comes back by its key alone")
    func tokens() throws {
        let server = Server()
        defer { server.stop() }
        let token = server.invite()
        func enter(_ key: Int, _ token: [UInt8]?, from source: UInt32 = 1) -> [UInt8] {
            let browser = Browser(server.port, from: source)
            browser.upgrade()
            let answer = browser.enter(key, token)
            if answer.first == 2 {
                #expect(browser.readFrame() == .close(.policyViolation))
                #expect(browser.isAtEnd)
            }
            return Array(answer.prefix(2))
        }
        #expect(enter(1, [UInt8](repeating: 0, count: 16)) == [2, 1])
        #expect(enter(1, nil) == [2, 1])
        #expect(enter(1, token).first == 1)
        #expect(enter(2, token) == [2, 1])
        #expect(enter(1, token).first == 1)
        #expect(enter(1, nil).first == 1)
        // Three more wrong ones make five.
        for _ in 0..<3 { #expect(enter(3, [UInt8](repeating: 1, count: 16)) == [2, 1]) }
        #expect(enter(3, server.invite()) == [2, 3])
        #expect(enter(1, nil).first == 1)
        #expect(enter(3, server.invite(), from: 9).first == 1)
    }

    @Test(
        "that says something else first is cut off",
        arguments: [[], [1], [2] + [UInt8](repeating: 0, count: 32), [UInt8](repeating: 1, count: 50)]
            as [[UInt8]])
    func wrongEntry(bytes: [UInt8]) throws {
        let server = Server()
        defer { server.stop() }
        let browser = Browser(server.port)
        browser.upgrade()
        browser.sendFrame(2, bytes)
        #expect(browser.readFrame() == .close(.policyViolation))
        #expect(browser.isAtEnd)
    }

    @Test("that sends text is cut off, before and after it was let in")
    func text() throws {
        let server = Server()
        defer { server.stop() }
        let stranger = Browser(server.port)
        stranger.upgrade()
        stranger.sendFrame(1, [65])
        #expect(stranger.readFrame() == .close(.unsupportedData))
        let guest = try Self.guest(server)
        guest.sendFrame(2, [1])
        guest.sendFrame(1, [65])
        #expect(guest.readFrame() == .close(.unsupportedData))
        #expect(guest.isAtEnd)
        #expect(server.wait { server.pipes.first?.ends.count == 1 })
        guard case .closed(let error?)? = server.pipes.first?.ends.first else {
            Issue.record("it was closed in good order")
            return
        }
        guard case .protocolViolation = error.cause else {
            Issue.record("\(error)")
            return
        }
    }

    // MARK: Deadlines

    @Test("that does not enter in time is cut off")
    func slowEntry() throws {
        let server = Server(times: WebTimes(request: .milliseconds(100)))
        defer { server.stop() }
        let browser = Browser(server.port)
        browser.upgrade()
        browser.sendFrame(2, [1], isLast: false)
        #expect(browser.readFrame() == .close(.policyViolation))
        #expect(browser.isAtEnd)
    }

    @Test("that was let in and says nothing is cut off, even if it pings")
    func silent() throws {
        let server = Server(times: WebTimes(waiting: .milliseconds(200)))
        defer { server.stop() }
        let browser = try Self.guest(server)
        browser.sendFrame(9, [1])
        #expect(browser.readFrame() == Browser.Frame(operation: 10, payload: [1]))
        browser.sendFrame(2, [])
        #expect(browser.readFrame() == .close(.policyViolation))
        #expect(browser.isAtEnd)
        #expect(server.pipes.isEmpty)
        #expect(server.waitOnLoop { server.transport.guests.first?.isHere == false })
        // It may come back.
        let again = Browser(server.port)
        again.upgrade()
        #expect(again.enter(1).first == 1)
    }

    @Test("whose pipe is open has no deadline")
    func noDeadline() throws {
        let server = Server(
            echoes: true, times: WebTimes(request: .milliseconds(50), waiting: .milliseconds(50)))
        defer { server.stop() }
        let browser = try Self.guest(server)
        browser.sendFrame(2, [1])
        #expect(browser.readBytes(1) == [1])
        usleep(300_000)
        browser.sendFrame(2, [2])
        #expect(browser.readBytes(1) == [2])
    }

    // MARK: Bytes

    @Test("exchanges much in both directions at once, unchanged")
    func large() throws {
        let server = Server(echoes: true)
        defer { server.stop() }
        let browser = try Self.guest(server)
        let bytes = (0..<6_000_000).map { UInt8(truncatingIfNeeded: ($0 &* 31) &+ ($0 >> 9)) }
        let writer = Background { browser.sendBytes(bytes) }
        let back = browser.readBytes(bytes.count)
        writer.join()
        #expect(back == bytes)
    }

    @Test("gets messages of at most 64 KiB")
    func messages() throws {
        let server = Server()
        defer { server.stop() }
        let browser = try Self.guest(server)
        browser.sendFrame(2, [1])
        #expect(server.wait { !server.pipes.isEmpty })
        let pipe = server.pipes[0]
        server.run { pipe.write([UInt8](repeating: 5, count: 200_000)) }
        var counts: [Int] = []
        while counts.reduce(0, +) < 200_000, let frame = browser.readFrame() {
            counts.append(frame.payload.count)
        }
        #expect(counts == [65_536, 65_536, 65_536, 200_000 - 3 * 65_536])
    }

    @Test("is read no faster than the session reads, and gets everything later")
    func backPressure() throws {
        let server = Server()
        defer { server.stop() }
        let browser = try Self.guest(server)
        browser.sendFrame(2, [0])
        #expect(server.wait { !server.pipes.isEmpty })
        let pipe = server.pipes[0]
        server.run { pipe.pipe.pauseReading() }
        let size = 40 << 20
        let writer = Background { browser.sendBytes([UInt8](repeating: 9, count: size)) }
        usleep(500_000)
        let taken = pipe.count
        usleep(200_000)
        #expect(pipe.count == taken && taken < 8 << 20, "\(taken)")
        server.run { pipe.pipe.resumeReading() }
        #expect(server.wait { pipe.count == size + 1 })
        writer.join()
    }

    @Test("that does not read backs up the session, which is told when it may go on")
    func slowGuest() throws {
        let server = Server()
        defer { server.stop() }
        let browser = try Self.guest(server)
        browser.sendFrame(2, [0])
        #expect(server.wait { !server.pipes.isEmpty })
        let pipe = server.pipes[0]
        let written = server.run {
            var written = 0
            while pipe.pipe.writableBytes > 0, written < 100 << 20 {
                pipe.write([UInt8](repeating: 1, count: 65_536))
                written += 65_536
            }
            return written
        }
        #expect(written < 100 << 20)
        #expect(server.run { pipe.pipe.counters.bytesWaiting } > 0)
        #expect(browser.readBytes(written).count == written)
        #expect(server.waitOnLoop { pipe.pipe.writableBytes > 0 })
        #expect(server.run { pipe.pipe.counters.bytesWritten } == written)
    }

    @Test("is slowed down to the rate that it may send at")
    func rate() throws {
        let server = Server { $0.rate = 1 << 20 }
        defer { server.stop() }
        let browser = try Self.guest(server)
        let clock = ContinuousClock()
        let start = clock.now
        let size = 2_600_000
        let writer = Background { browser.sendBytes([UInt8](repeating: 9, count: size)) }
        #expect(server.wait { server.pipes.first?.count == size })
        writer.join()
        // A second's worth comes at once.
        #expect(clock.now - start > .milliseconds(1_000))
    }

    @Test("is slowed down whatever it sends, also pings")
    func rateOfPings() throws {
        let server = Server { $0.rate = 1 << 20 }
        defer { server.stop() }
        let browser = try Self.guest(server)
        browser.sendFrame(2, [0])
        let start = ContinuousClock().now
        let pings = (0..<10_000).flatMap { _ in BrowserFrames.frame(10, [UInt8](repeating: 1, count: 120)) }
        let writer = Background {
            browser.send(pings + pings)
            browser.sendFrame(2, [1])
        }
        #expect(server.wait { server.pipes.first?.count == 2 })
        writer.join()
        #expect(ContinuousClock().now - start > .milliseconds(1_000))
    }

    @Test("that sends many frames before it begins is cut off", arguments: [false, true])
    func earlyFlood(enters: Bool) throws {
        let server = Server()
        defer { server.stop() }
        let browser = Browser(server.port)
        browser.upgrade()
        if enters { #expect(browser.enter(1, server.invite()).first == 1) }
        browser.send((0..<1_100).flatMap { _ in BrowserFrames.frame(10, [1]) })
        #expect(browser.readFrame() == .close(.policyViolation))
        #expect(browser.isAtEnd)
    }

    @Test("gets an answer to its last ping, not to each of a flood")
    func pingFlood() throws {
        let server = Server()
        defer { server.stop() }
        let browser = try Self.guest(server)
        browser.sendFrame(2, [0])
        let writer = Background {
            browser.send((0..<10_000).flatMap { BrowserFrames.frame(9, [UInt8($0 >> 8), UInt8($0 & 0xFF)]) })
        }
        var pongs = 0
        while let frame = browser.readFrame(), frame.operation == 10 {
            pongs += 1
            if frame.payload == [UInt8(9_999 >> 8), UInt8(9_999 & 0xFF)] { break }
        }
        writer.join()
        #expect((1...2_000).contains(pongs), "\(pongs)")
    }

    @Test("that has used up its bytes is cut off, and the error says how many those are")
    func byteLimit() throws {
        let server = Server { $0.byteLimit = 1_000 }
        defer { server.stop() }
        let browser = try Self.guest(server)
        browser.sendFrame(2, [UInt8](repeating: 1, count: 900))
        #expect(server.wait { server.pipes.first?.count == 900 })
        browser.sendFrame(2, [UInt8](repeating: 1, count: 101))
        #expect(browser.readFrame() == .close(.policyViolation))
        #expect(browser.isAtEnd)
        #expect(server.wait { server.pipes.first?.ends.count == 1 })
        guard case .closed(let error?)? = server.pipes.first?.ends.first else {
            Issue.record("no error")
            return
        }
        #expect(error.cause == .limit("bytes of a guest", 1_000) && error.advice?.contains("bytes=") == true)
    }

    @Test("whose session writes too much is cut off too")
    func byteLimitOfWrites() throws {
        let server = Server { $0.byteLimit = 1_000 }
        defer { server.stop() }
        let browser = try Self.guest(server)
        browser.sendFrame(2, [1])
        #expect(server.wait { server.pipes.first?.count == 1 })
        let pipe = server.pipes[0]
        server.run { pipe.write([UInt8](repeating: 1, count: 1_000)) }
        #expect(server.wait { pipe.ends.count == 1 })
    }

    // MARK: The end

    @Test("closes the WebSocket, and the session hears that it ended in good order")
    func closedByGuest() throws {
        let server = Server()
        defer { server.stop() }
        let browser = try Self.guest(server)
        browser.sendFrame(2, [1])
        browser.sendFrame(8, [3, 0xE8])
        #expect(browser.readFrame() == .close(.normal))
        #expect(browser.isAtEnd)
        #expect(server.wait { server.pipes.first?.ends == [.closed(nil)] })
        #expect(server.pipes.first?.bytes == [1])
        #expect(server.waitOnLoop { server.transport.connectionCount == 0 })
        #expect(server.guests.first?.isHere == false)
    }

    @Test("gets all that was written before the session closes, and then the close")
    func closedBySession() throws {
        let server = Server()
        defer { server.stop() }
        let browser = try Self.guest(server)
        browser.sendFrame(2, [1])
        #expect(server.wait { !server.pipes.isEmpty })
        let pipe = server.pipes[0]
        server.run {
            pipe.write([UInt8](repeating: 4, count: 3_000_000))
            pipe.pipe.close(.afterWriting)
        }
        #expect(browser.readBytes(3_000_000).count == 3_000_000)
        #expect(browser.readFrame() == .close(.normal))
        #expect(browser.isAtEnd)
        #expect(server.wait { pipe.ends == [.drained] })
    }

    @Test("whose connection breaks is over, and may come back")
    func broken() throws {
        let server = Server()
        defer { server.stop() }
        let browser = try Self.guest(server)
        browser.sendFrame(2, [1])
        #expect(server.wait { !server.pipes.isEmpty })
        browser.reset()
        #expect(server.wait { server.pipes[0].ends.count == 1 })
        let again = Browser(server.port)
        again.upgrade()
        #expect(again.enter(1).first == 1)
        again.sendFrame(2, [2])
        #expect(server.wait { server.pipes.count == 2 })
        #expect(server.pipes[0].guest == server.pipes[1].guest)
    }

    /// Bytes that a guest sends behind those that end its pipe. The session must hear of the end all the same.
    static let afterwards: [[UInt8]] = [
        [], BrowserFrames.frame(8, [3, 0xE8]), BrowserFrames.frame(1, [65]), BrowserFrames.binary([1, 2]),
    ]

    @Test("that has used up its bytes is reported, whatever it sends behind them", arguments: afterwards)
    func limitAndMore(more: [UInt8]) throws {
        let server = Server { $0.byteLimit = 1_000 }
        defer { server.stop() }
        let browser = try Self.guest(server)
        browser.send(BrowserFrames.binary([UInt8](repeating: 1, count: 1_001)) + more)
        #expect(server.wait { server.pipes.first?.ends.count == 1 })
        usleep(20_000)
        #expect(server.pipes.first?.ends.count == 1)
    }

    @Test("that has used up its bytes and resets the connection is reported")
    func limitAndReset() throws {
        let server = Server { $0.byteLimit = 1_000 }
        defer { server.stop() }
        for key in 1...10 {
            let browser = try Self.guest(server, key)
            browser.send(BrowserFrames.binary([UInt8](repeating: 1, count: 1_001)))
            browser.reset()
            #expect(server.wait { server.pipes.count == key && server.pipes[key - 1].ends.count == 1 })
        }
    }

    @Test(
        "that goes on while the session closes the pipe does not keep the session from being done",
        arguments: afterwards)
    func closingAndMore(more: [UInt8]) throws {
        let server = Server(closes: true)
        defer { server.stop() }
        let browser = try Self.guest(server)
        browser.send(BrowserFrames.binary([1, 2, 3]) + more)
        #expect(server.wait { server.pipes.first?.ends == [.drained] })
    }

    // MARK: Revoking

    @Test("that is revoked is cut off, and comes back with another invitation only")
    func revoked() throws {
        let server = Server()
        defer { server.stop() }
        let token = server.invite()
        let browser = Browser(server.port)
        browser.upgrade()
        #expect(browser.enter(1, token).first == 1)
        browser.sendFrame(2, [1])
        #expect(server.wait { !server.pipes.isEmpty })
        let guest = try Self.peer(1)
        server.run { server.transport.revoke(guest) }
        #expect(browser.readFrame() == .close(.policyViolation))
        #expect(browser.isAtEnd)
        #expect(server.wait { server.pipes[0].ends.count == 1 })
        #expect(server.guests.isEmpty)
        for again in [nil, token] {
            let other = Browser(server.port)
            other.upgrade()
            #expect(other.enter(1, again).prefix(2) == [2, 4])
        }
        _ = try Self.guest(server, 1)
        #expect(server.guests.map(\.id) == [guest])
    }

    @Test("that is revoked before it began its pipe is cut off")
    func revokedWaiting() throws {
        let server = Server()
        defer { server.stop() }
        let browser = try Self.guest(server)
        let guest = try Self.peer(1)
        server.run { server.transport.revoke(guest) }
        #expect(browser.readFrame() == .close(.policyViolation))
        #expect(browser.isAtEnd)
    }

    @Test("that comes back with another invitation stays, when the connection it was sent away from ends")
    func revokedAndBack() throws {
        let server = Server()
        defer { server.stop() }
        let first = try Self.guest(server)
        first.sendFrame(2, [1])
        #expect(server.wait { !server.pipes.isEmpty })
        let guest = try Self.peer(1)
        server.run { server.transport.revoke(guest) }
        let second = try Self.guest(server)
        #expect(server.guests.map(\.isHere) == [true])
        // The server waits for the first connection to end.
        #expect(first.readFrame() == .close(.policyViolation))
        first.reset()
        #expect(server.waitOnLoop { server.transport.connectionCount == 1 })
        #expect(server.guests.map(\.isHere) == [true])
        withExtendedLifetime(second) {}
    }

    // MARK: The transport

    @Test("that waits when advertising stops does not come in, and one whose pipe is open stays")
    func stopsAdvertising() throws {
        let server = Server(echoes: true)
        defer { server.stop() }
        let waiting = try Self.guest(server, 1)
        let open = try Self.guest(server, 2)
        open.sendFrame(2, [1])
        #expect(open.readBytes(1) == [1])
        server.run { server.transport.stopAdvertising() }
        waiting.sendFrame(2, [1])
        while waiting.readFrame() != nil {}
        open.sendFrame(2, [2])
        #expect(open.readBytes(1) == [2])
        #expect(server.pipes.count == 1)
    }

    @Test("is dropped at once when the transport is shut down")
    func shutdown() throws {
        let server = Server()
        let browser = try Self.guest(server)
        browser.sendFrame(2, [1])
        #expect(server.wait { !server.pipes.isEmpty })
        server.stop()
        while browser.readFrame() != nil {}
        #expect(browser.isAtEnd && server.pipes[0].ends.isEmpty)
    }
}
