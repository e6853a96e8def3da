import Glibc
import NighTestKit
import NighUV
import Testing

@testable import NighCore
@testable import NighTCP
@testable import NighWeb

@Suite("The server of a page") struct WebPageTests {
    @Test("serves the files of the page, and several on one connection")
    func serves() throws {
        let server = Server()
        defer { server.stop() }
        let browser = Browser(server.port)
        let page = try #require(browser.request("/"))
        #expect(page.status == 200 && page.body == Array("<p>Welcome".utf8))
        #expect(page.headers["content-type"] == "text/html; charset=utf-8")
        let style = try #require(browser.request("/style.css?v=2", host: "LOCALHOST:\(browser.port)"))
        #expect(style.status == 200 && style.body == Array("p {}".utf8))
        let module = try #require(browser.request("/nigh.js"))
        #expect(module.status == 200 && module.body.count > 1_000)
        #expect(module.headers["content-type"] == "text/javascript; charset=utf-8")
    }

    @Test("answers two requests that come at once, in their order")
    func pipelined() throws {
        let server = Server()
        defer { server.stop() }
        let browser = Browser(server.port)
        browser.send(
            "GET /style.css HTTP/1.1\r\nHost: \(browser.name)\r\n\r\nGET / HTTP/1.1\r\nHost: \(browser.name)\r\n\r\n"
        )
        #expect(browser.readAnswer()?.body == Array("p {}".utf8))
        #expect(browser.readAnswer()?.body == Array("<p>Welcome".utf8))
    }

    @Test(
        "has no other files", arguments: ["/x", "/../etc/passwd", "//", "/style.css/", "/STYLE.CSS", "/%2e"])
    func notFound(path: String) throws {
        let server = Server()
        defer { server.stop() }
        let browser = Browser(server.port)
        #expect(browser.request(path)?.status == 404)
        #expect(browser.isAtEnd)
    }

    @Test(
        "shows nothing to a browser that was led here under another name",
        arguments: ["evil.example", "evil.example:PORT", "127.0.0.1", "127.0.0.2:PORT", "127.0.0.1:1", ""])
    func foreignHost(host: String) throws {
        let server = Server()
        defer { server.stop() }
        let port = server.port
        let host = host.replacing("PORT", with: "\(port)")
        for path in ["/", "/nigh.js", "/x", "/nigh"] {
            let browser = Browser(port)
            #expect(browser.request(path, host: host)?.status == 403, "\(path)")
            #expect(browser.isAtEnd)
        }
    }

    @Test("refuses what is no request with the status for it")
    func mistakes() throws {
        let server = Server()
        defer { server.stop() }
        let port = server.port
        let name = "127.0.0.1:\(port)"
        let cases: [(String, Int)] = [
            ("POST / HTTP/1.1\r\nHost: \(name)\r\nContent-Length: 0\r\n\r\n", 405),
            ("GET / HTTP/1.0\r\nHost: \(name)\r\n\r\n", 505), ("GET / HTTP/1.1\r\n\r\n", 400),
            ("\u{16}\u{3}\u{1}\r\n\r\n", 400), (String(repeating: "a", count: 8_193), 431),
        ]
        for (text, status) in cases {
            let browser = Browser(port)
            browser.send(text)
            let answer = try #require(browser.readAnswer())
            #expect(answer.status == status && answer.headers["connection"] == "close")
            #expect(browser.isAtEnd)
        }
    }

    @Test("closes the connection when asked to, and after 100 requests")
    func closes() throws {
        let server = Server()
        defer { server.stop() }
        let browser = Browser(server.port)
        #expect(browser.request("/", ["Connection: close"])?.headers["connection"] == "close")
        #expect(browser.isAtEnd)
        let other = Browser(server.port)
        for number in 1...100 {
            let answer = try #require(other.request("/style.css"))
            #expect(answer.status == 200 && (answer.headers["connection"] == "close") == (number == 100))
        }
        #expect(other.isAtEnd)
    }

    @Test("says that a program has no page, if it has none")
    func withoutPage() throws {
        let server = Server(page: .none)
        defer { server.stop() }
        let browser = Browser(server.port)
        let page = try #require(browser.request("/"))
        #expect(page.status == 200 && String(decoding: page.body, as: UTF8.self).contains("no page"))
    }

    // MARK: Deadlines and limits

    @Test(
        "ends a connection that makes no request, or none to its end",
        arguments: ["", "GET / HTTP/1.1\r\nHost:"])
    func slowHeaders(text: String) throws {
        let server = Server(times: WebTimes(request: .milliseconds(100)))
        defer { server.stop() }
        let browser = Browser(server.port)
        browser.send(text)
        #expect(browser.isAtEnd)
    }

    @Test("ends a request that comes byte by byte, and one that never begins after an answer")
    func trickling() throws {
        let server = Server(times: WebTimes(request: .milliseconds(200)))
        defer { server.stop() }
        let browser = Browser(server.port)
        var sent = 0
        for byte in "GET / HTTP/1.1\r\nX: \(String(repeating: "a", count: 2_000))".utf8 {
            guard browser.send([byte]) == 1 else { break }
            sent += 1
            wait(milliseconds: 2)
        }
        #expect(sent < 1_900)
        let other = Browser(server.port)
        #expect(other.request("/")?.status == 200)
        #expect(other.isAtEnd)
    }

    @Test("sends a file to its end, however slowly the browser takes it")
    func slowReader() throws {
        let file = [UInt8](repeating: 7, count: 24 << 20)
        let page = WebPage(["/": WebPage.File(type: "text/plain", bytes: ByteSlice(file))])
        let server = Server(page: page, times: WebTimes(request: .milliseconds(200)))
        defer { server.stop() }
        let browser = Browser(server.port)
        browser.send("GET / HTTP/1.1\r\nHost: \(browser.name)\r\n\r\n")
        var count = 0
        for _ in 0..<24 {
            wait(milliseconds: 40)
            count += browser.read(1 << 20).count
        }
        #expect(count == 24 << 20)
    }

    @Test("ends a connection whose browser takes nothing of an answer")
    func stalledReader() throws {
        let page = WebPage([
            "/": WebPage.File(type: "text/plain", bytes: ByteSlice([UInt8](repeating: 7, count: 32 << 20)))
        ])
        let server = Server(page: page, times: WebTimes(request: .milliseconds(100)))
        defer { server.stop() }
        let browser = Browser(server.port)
        browser.send("GET / HTTP/1.1\r\nHost: \(browser.name)\r\n\r\n")
        #expect(server.waitOnLoop { server.transport.connectionCount == 0 })
    }

    private func wait(milliseconds: UInt32) { usleep(milliseconds * 1_000) }

    @Test("takes 16 connections from one address, and others from other addresses")
    func perSource() throws {
        let server = Server()
        defer { server.stop() }
        let port = server.port
        var browsers = (0..<16).map { _ in Browser(port) }
        for browser in browsers { #expect(browser.request("/")?.status == 200) }
        #expect(Browser(port).isAtEnd)
        #expect(Browser(port, from: 2).request("/")?.status == 200)
        browsers.removeLast()
        #expect(server.waitOnLoop { server.transport.connectionCount == 15 })
        #expect(Browser(port).request("/")?.status == 200)
    }

    @Test("takes 64 connections, and a new one in place of one of the address with the most")
    func inAll() throws {
        let server = Server()
        defer { server.stop() }
        let port = server.port
        let crowd = (0..<64).map { Browser(port, from: UInt32(10 + $0 / 16)) }
        #expect(server.waitOnLoop { server.transport.connectionCount == 64 })
        let phone = Browser(port, from: 2)
        #expect(phone.request("/")?.status == 200)
        #expect(server.run { server.transport.connectionCount } == 64)
        // The phone is not the next to go.
        let another = Browser(port, from: 10)
        _ = another
        let last = Browser(port, from: 3)
        #expect(last.request("/")?.status == 200)
        #expect(phone.request("/")?.status == 200)
        withExtendedLifetime(crowd) {}
    }

    @Test("makes room also where strangers have opened WebSockets and do not enter")
    func enteringMakesRoom() throws {
        let server = Server()
        defer { server.stop() }
        let port = server.port
        let crowd = (0..<64).map { Browser(port, from: UInt32(10 + $0 / 16)) }
        for browser in crowd { #expect(browser.upgrade()?.status == 101) }
        #expect(Browser(port, from: 2).request("/")?.status == 200)
    }

    @Test("lets a burst of 500 connections wait, and drops none of the attempts")
    func burst() throws {
        let server = Server()
        defer { server.stop() }
        let port = server.port
        let clock = ContinuousClock()
        // While the loop is busy, nothing is accepted.
        let release = Monitor()
        nonisolated(unsafe) var isReleased = false
        server.loop.execute { _ = release.wait(within: .seconds(20)) { isReleased } }
        let start = clock.now
        let burst = (0..<500).map { Browser(port, from: UInt32(2 + $0 % 200)) }
        let time = clock.now - start
        release.change { isReleased = true }
        #expect(time < .milliseconds(900), "\(time)")
        withExtendedLifetime(burst) {}
    }

    @Test("never makes room at the cost of guests")
    func guestsStay() throws {
        let server = Server()
        defer { server.stop() }
        let port = server.port
        let guest = Browser(port, from: 10)
        #expect(guest.upgrade()?.status == 101)
        #expect(guest.enter(1, server.invite()).first == 1)
        let crowd = (0..<200).map { Browser(port, from: UInt32(10 + $0 % 40)) }
        #expect(Browser(port, from: 2).request("/")?.status == 200)
        guest.sendFrame(2, [1, 2, 3])
        #expect(server.wait { server.pipes.first?.count == 3 })
        withExtendedLifetime(crowd) {}
    }

    // MARK: Ports

    @Test("says what to do if a port that was named is in use")
    func portInUse() throws {
        let first = Server()
        defer { first.stop() }
        let port = first.port
        let second = Server { $0.port = port }
        defer { second.stop() }
        #expect(second.wait { !second.failures.isEmpty })
        let error = try #require(second.failures.first)
        #expect(error.stage == .advertising && error.transport == "web")
        #expect(
            error.advice?.contains("port \(port) is in use") == true
                && error.advice?.contains("port=") == true)
        #expect(second.listening.isEmpty)
    }

    @Test("takes another port if the usual one is in use")
    func otherPort() throws {
        let first = Server { $0.port = nil }
        defer { first.stop() }
        let second = Server { $0.port = nil }
        defer { second.stop() }
        #expect(first.port != second.port)
        #expect(Browser(second.port).request("/")?.status == 200)
    }

    @Test("listens no more when advertising stops, and again when it begins")
    func stops() throws {
        let server = Server()
        defer { server.stop() }
        let port = server.port
        let idle = Browser(port)
        server.run { server.transport.stopAdvertising() }
        #expect(idle.isAtEnd)
        #expect(server.wait { server.listening.isEmpty })
        server.run { server.transport.advertise(Server.advertisement) }
        #expect(Browser(server.port).request("/")?.status == 200)
    }

    @Test("invites nobody while it does not listen")
    func noInvitation() throws {
        let server = Server()
        defer { server.stop() }
        _ = server.port
        #expect(server.run { server.transport.makeInvitationNow() } != nil)
        server.run { server.transport.stopAdvertising() }
        #expect(server.run { server.transport.makeInvitationNow() } == nil)
    }
}
