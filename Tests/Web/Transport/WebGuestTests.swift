import Glibc
import NighTestKit
import Testing

@testable import NighCore
@testable import NighWeb

@Suite("A guest at the server") struct WebGuestTests {
    /// A server with nothing special. Tests that need another one make it.
    private let server = Server()

    private static func peer(_ key: Int) throws -> PeerID {
        try #require(GuestEntry([1] + Browser.key(key))).peer
    }

    // MARK: The upgrade

    @Test func `A guest gets a WebSocket that speaks Nigh, on the connection that loaded the page`() throws {
        let browser = server.browser()
        #expect(browser.request("/")?.status == 200)
        let answer = try #require(browser.upgrade())
        #expect(answer.status == 101 && answer.headers["sec-websocket-protocol"] == "nigh.1")
        #expect(answer.headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        #expect(answer.headers["sec-websocket-extensions"] == nil)
        #expect(browser.enter(1, server.invite()).first == 1)
    }

    @Test(arguments: ["Upgrade", "Connection", "Sec-WebSocket-Version", "Sec-WebSocket-Protocol"])
    func `A guest gets no WebSocket if a header is missing`(header: String) throws {
        let browser = server.browser()
        let answer = try #require(browser.upgrade(without: header))
        #expect(answer.status == 426 && answer.headers["upgrade"] == "websocket")
        #expect(browser.isAtEnd)
        #expect(server.browser().upgrade(without: "Sec-WebSocket-Key")?.status == 400)
    }

    /// WebNamesTests has the names and origins that are permitted, and many that are not.
    @Test(arguments: [nil, "evil.example:PORT"])
    func `A guest gets no WebSocket from a page of another origin, or under a foreign name`(host: String?) {
        let browser = server.browser()
        let host = host?.replacing("PORT", with: "\(browser.port)")
        #expect(browser.upgrade(host: host, origin: "http://\(host ?? "evil.example")")?.status == 403)
        #expect(browser.isAtEnd)
    }

    @Test func `A guest may send its first message right behind the upgrade`() throws {
        let browser = server.browser()
        let entry = BrowserFrames.binary([1] + Browser.key(1) + server.invite())
        let upgrade = Array(browser.requestText("/nigh", Browser.upgradeHeaders).utf8)
        browser.send(upgrade + entry + BrowserFrames.binary([5, 6]))
        #expect(browser.readAnswer()?.status == 101)
        #expect(browser.readFrame()?.payload.first == 1)
        #expect(server.wait { server.pipes.first?.bytes == [5, 6] })
    }

    // MARK: Entering

    @Test func `A guest comes in with a token, and learns its PeerID and whose guest it is`() throws {
        let browser = server.stranger()
        let answer = browser.enter(1, server.invite())
        let guest = try Self.peer(1)
        #expect(answer == GuestAnswer.entered(guest, Server.advertisement).bytes)
        #expect(server.guests.map(\.id) == [guest] && server.guests.first?.isHere == true)
        #expect(server.guests.first?.address == "127.0.0.1" && server.pipes.isEmpty)
        #expect(try server.openPipe(of: browser).guest == guest)
    }

    @Test func `A guest may send its first message in pieces`() throws {
        let browser = server.stranger()
        let message = [1] + Browser.key(1) + server.invite()
        for (index, byte) in message.enumerated() {
            browser.sendFrame(index == 0 ? 2 : 0, [byte], isLast: index == message.count - 1)
        }
        #expect(browser.readFrame()?.payload.first == 1)
    }

    /// GuestBookTests has the rules by which tokens count.
    @Test func `A guest with a wrong token is refused, and a known one comes back by its key`() throws {
        let token = server.invite()
        func enter(_ key: Int, _ token: [UInt8]?, from source: UInt32 = 1) -> [UInt8] {
            let browser = server.stranger(from: source)
            let answer = browser.enter(key, token)
            if answer.first == 2 { #expect(browser.isClosed(with: .policyViolation)) }
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

    @Test(arguments: [[], [2] + [UInt8](repeating: 0, count: 32)] as [[UInt8]])
    func `A guest that says something else first is cut off`(bytes: [UInt8]) {
        let browser = server.stranger()
        browser.sendFrame(2, bytes)
        #expect(browser.isClosed(with: .policyViolation))
    }

    @Test func `A guest that sends text is cut off, before and after it was let in`() throws {
        let stranger = server.stranger()
        stranger.sendFrame(1, [65])
        #expect(stranger.readFrame() == .close(.unsupportedData))
        let guest = server.guest()
        let pipe = try server.openPipe(of: guest)
        guest.sendFrame(1, [65])
        #expect(guest.isClosed(with: .unsupportedData))
        #expect(server.wait { pipe.ends.count == 1 })
        guard case .closed(let error?)? = pipe.ends.first, case .protocolViolation = error.cause else {
            return _ = Issue.record("\(pipe.ends)")
        }
    }

    // MARK: Deadlines

    @Test func `A guest that does not enter in time is cut off`() {
        let server = Server(times: WebTimes(request: .milliseconds(100)))
        let browser = server.stranger()
        browser.sendFrame(2, [1], isLast: false)
        #expect(browser.isClosed(with: .policyViolation))
    }

    @Test func `A guest that was let in and says nothing is cut off although it pings, and may come back`() {
        let server = Server(times: WebTimes(waiting: .milliseconds(200)))
        let guest = server.guest()
        guest.sendFrame(9, [1])
        #expect(guest.readFrame() == Browser.Frame(operation: 10, payload: [1]))
        guest.sendFrame(2, [])
        #expect(guest.isClosed(with: .policyViolation))
        #expect(server.pipes.isEmpty)
        #expect(server.waitOnLoop { $0.guests.first?.isHere == false })
        #expect(server.stranger().enter(1).first == 1)
    }

    @Test func `A guest whose pipe is open has no deadline`() {
        let server = Server(.echoes, times: WebTimes(request: .milliseconds(50), waiting: .milliseconds(50)))
        let guest = server.guest()
        for byte: UInt8 in [1, 2] {
            guest.sendFrame(2, [byte])
            #expect(guest.readBytes(1) == [byte])
            usleep(200_000)
        }
    }

    // MARK: Bytes

    @Test func `A guest exchanges much in both directions at once, unchanged`() {
        let server = Server(.echoes)
        let guest = server.guest()
        let bytes = (0..<6_000_000).map { UInt8(truncatingIfNeeded: ($0 &* 31) &+ ($0 >> 9)) }
        let back = guest.sending {
            $0.sendBytes(bytes)
        } during: {
            guest.readBytes(bytes.count)
        }
        #expect(back == bytes)
    }

    @Test func `A guest gets messages of at most 64 KiB`() throws {
        let guest = server.guest()
        let pipe = try server.openPipe(of: guest)
        server.run { _ in pipe.write([UInt8](repeating: 5, count: 200_000)) }
        var counts: [Int] = []
        while counts.reduce(0, +) < 200_000, let frame = guest.readFrame() {
            counts.append(frame.payload.count)
        }
        #expect(counts == [65_536, 65_536, 65_536, 200_000 - 3 * 65_536])
    }

    @Test func `A guest is read no faster than the session reads, and everything arrives later`() throws {
        let guest = server.guest()
        let pipe = try server.openPipe(of: guest)
        server.run { _ in pipe.pipe.pauseReading() }
        let size = 40 << 20
        guest.sending {
            $0.sendBytes([UInt8](repeating: 9, count: size))
        } during: {
            usleep(500_000)
            let taken = pipe.count
            usleep(200_000)
            #expect(pipe.count == taken && taken < 8 << 20, "\(taken)")
            server.run { _ in pipe.pipe.resumeReading() }
            #expect(server.wait { pipe.count == size + 1 })
        }
    }

    @Test func `A guest that does not read backs up the session, which hears when it may go on`() throws {
        let guest = server.guest()
        let pipe = try server.openPipe(of: guest)
        let written = server.run { _ in
            var written = 0
            while pipe.pipe.writableBytes > 0, written < 100 << 20 {
                pipe.write([UInt8](repeating: 1, count: 65_536))
                written += 65_536
            }
            return written
        }
        #expect(written < 100 << 20)
        #expect(server.run { _ in pipe.pipe.counters.bytesWaiting } > 0)
        #expect(guest.readBytes(written).count == written)
        #expect(server.waitOnLoop { _ in pipe.pipe.writableBytes > 0 })
        #expect(server.run { _ in pipe.pipe.counters.bytesWritten } == written)
    }

    // MARK: Limits

    @Test(arguments: [false, true])
    func `A guest is slowed down to the rate that it may send at, whatever it sends`(isPinging: Bool) throws {
        let server = Server { $0.rate = 1 << 20 }
        let guest = server.guest()
        let pipe = try server.openPipe(of: guest)
        let start = ContinuousClock().now
        let bytes = [UInt8](repeating: 9, count: isPinging ? 120 : 50_000)
        let frame = BrowserFrames.frame(isPinging ? 10 : 2, bytes)
        let frames = Array(repeatElement(frame, count: 2_500_000 / frame.count).joined())
        guest.sending {
            $0.send(frames + BrowserFrames.binary([1]))
        } during: {
            #expect(server.wait { pipe.count == (isPinging ? 2 : 2 + 49 * 50_000) })
        }
        // A second's worth comes at once.
        #expect(ContinuousClock().now - start > .milliseconds(1_000))
    }

    @Test(arguments: [false, true])
    func `A guest that sends many frames before it begins is cut off`(enters: Bool) {
        let browser = enters ? server.guest() : server.stranger()
        browser.send((0..<1_100).flatMap { _ in BrowserFrames.frame(10, [1]) })
        #expect(browser.isClosed(with: .policyViolation))
    }

    @Test func `A guest gets an answer to its last ping, and not to each of a flood`() {
        let guest = server.guest()
        guest.sendFrame(2, [0])
        func payload(_ number: Int) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }
        let pings = (0..<10_000).flatMap { BrowserFrames.frame(9, payload($0)) }
        var pongs = 0
        guest.sending {
            $0.send(pings)
        } during: {
            while let frame = guest.readFrame(), frame.operation == 10 {
                pongs += 1
                if frame.payload == payload(9_999) { break }
            }
        }
        #expect((1...2_000).contains(pongs), "\(pongs)")
    }

    @Test(arguments: [true, false])
    func `A guest that has used up its bytes is cut off, and the error says how many`(sends: Bool) throws {
        let server = Server { $0.byteLimit = 1_000 }
        let guest = server.guest()
        let pipe = try server.openPipe(of: guest)
        // Bytes that are sent to it count as well.
        let bytes = [UInt8](repeating: 1, count: 899)
        if sends { guest.sendFrame(2, bytes) } else { server.run { _ in pipe.write(bytes) } }
        #expect(sends ? server.wait { pipe.count == 900 } : guest.readBytes(899) == bytes)
        guest.sendFrame(2, [UInt8](repeating: 1, count: 101))
        #expect(guest.isClosed(with: .policyViolation))
        #expect(server.wait { pipe.ends.count == 1 })
        guard case .closed(let error?)? = pipe.ends.first else { return _ = Issue.record("no error") }
        #expect(error.cause == .limit("bytes of a guest", 1_000) && error.advice?.contains("bytes=") == true)
    }

    // MARK: The end

    @Test func `A guest that closes the WebSocket ends its pipe in good order`() throws {
        let guest = server.guest()
        let pipe = try server.openPipe(of: guest)
        guest.sendFrame(8, [3, 0xE8])
        #expect(guest.isClosed(with: .normal))
        #expect(server.wait { pipe.ends == [.closed(nil)] })
        #expect(pipe.bytes == [1])
        #expect(server.hasConnections(0))
        #expect(server.guests.first?.isHere == false)
    }

    @Test func `A guest gets all that was written before the session closes, and then the close`() throws {
        let guest = server.guest()
        let pipe = try server.openPipe(of: guest)
        server.run { _ in
            pipe.write([UInt8](repeating: 4, count: 3_000_000))
            pipe.pipe.close(.afterWriting)
        }
        #expect(guest.readBytes(3_000_000).count == 3_000_000)
        #expect(guest.isClosed(with: .normal))
        #expect(server.wait { pipe.ends == [.drained] })
    }

    @Test func `A guest whose connection breaks is gone, and may come back`() throws {
        let guest = server.guest()
        let first = try server.openPipe(of: guest)
        guest.reset()
        #expect(server.wait { first.ends.count == 1 })
        let again = server.stranger()
        #expect(again.enter(1).first == 1)
        #expect(try server.openPipe(of: again).guest == first.guest)
    }

    /// Bytes that a guest sends behind those that end its pipe, and nil if it resets the connection. The session must
    /// hear of the end in any case, and once.
    static let afterwards: [[UInt8]?] = [
        [], BrowserFrames.frame(8, [3, 0xE8]), BrowserFrames.frame(1, [65]), BrowserFrames.binary([1, 2]),
        nil,
    ]

    @Test(arguments: afterwards)
    func `A guest that has used up its bytes is reported, whatever it does then`(more: [UInt8]?) {
        let server = Server { $0.byteLimit = 1_000 }
        for key in 1...(more == nil ? 10 : 1) {
            let guest = server.guest(key)
            guest.send(BrowserFrames.binary([UInt8](repeating: 1, count: 1_001)) + (more ?? []))
            if more == nil { guest.reset() }
            #expect(server.wait { server.pipes.count == key && server.pipes[key - 1].ends.count == 1 })
        }
        usleep(20_000)
        #expect(server.pipes.allSatisfy { $0.ends.count == 1 })
    }

    @Test(arguments: afterwards.compactMap(\.self))
    func `A guest that goes on while the session closes its pipe does not delay that`(more: [UInt8]) {
        let server = Server(.closes)
        let guest = server.guest()
        guest.send(BrowserFrames.binary([1, 2, 3]) + more)
        #expect(server.wait { server.pipes.first?.ends == [.drained] })
    }

    // MARK: Revoking

    @Test(arguments: [true, false])
    func `A guest that is revoked comes back with another invitation only`(isOpen: Bool) throws {
        let (peer, token, browser) = (try Self.peer(1), server.invite(), server.stranger())
        #expect(browser.enter(1, token).first == 1)
        let pipe = isOpen ? try server.openPipe(of: browser) : nil
        server.run { $0.revoke(peer) }
        #expect(browser.isClosed(with: .policyViolation))
        if let pipe { #expect(server.wait { pipe.ends.count == 1 }) }
        #expect(server.guests.isEmpty)
        for again in [nil, token] { #expect(server.stranger().enter(1, again).prefix(2) == [2, 4]) }
        let back = server.guest()
        #expect(server.guests.map(\.id) == [peer])
        withExtendedLifetime(back) {}
    }

    @Test func `A guest that is back stays when the connection that it was sent away from ends`() throws {
        let (peer, first) = (try Self.peer(1), server.guest())
        _ = try server.openPipe(of: first)
        server.run { $0.revoke(peer) }
        let second = server.guest()
        #expect(server.guests.map(\.isHere) == [true])
        // The server waits for the first connection to end.
        #expect(first.readFrame() == .close(.policyViolation))
        first.reset()
        #expect(server.hasConnections(1))
        #expect(server.guests.map(\.isHere) == [true])
        withExtendedLifetime(second) {}
    }

    // MARK: The transport

    @Test func `When advertising stops, a guest whose pipe is open stays, and one that waits goes`() throws {
        let server = Server(.echoes)
        let (waiting, open) = (server.guest(1), server.guest(2))
        open.sendFrame(2, [1])
        #expect(open.readBytes(1) == [1])
        server.run { $0.stopAdvertising() }
        waiting.sendFrame(2, [1])
        while waiting.readFrame() != nil {}
        open.sendFrame(2, [2])
        #expect(open.readBytes(1) == [2])
        #expect(server.pipes.count == 1)
    }

    @Test func `A guest is dropped at once when the transport is shut down`() throws {
        let guest = server.guest()
        let pipe = try server.openPipe(of: guest)
        server.run { $0.shutdown() }
        while guest.readFrame() != nil {}
        #expect(guest.isAtEnd && pipe.ends.isEmpty)
    }
}
