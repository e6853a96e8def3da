import Glibc
import NighTestKit
import Testing

@testable import NighCore
@testable import NighWeb

@Suite("The server of a page") struct WebPageTests {
    /// A server with nothing special. Tests that need another one make it.
    private let server = Server()

    @Test func `The server has the files of the page, and sends several on one connection`() throws {
        let browser = server.browser()
        let page = try #require(browser.request("/"))
        #expect(page.status == 200 && page.body == Array("<p>Welcome".utf8))
        #expect(page.headers["content-type"] == "text/html; charset=utf-8")
        let style = try #require(browser.request("/style.css?v=2", host: "LOCALHOST:\(browser.port)"))
        #expect(style.status == 200 && style.body == Array("p {}".utf8))
        let module = try #require(browser.request("/nigh.js"))
        #expect(module.status == 200 && module.body.count > 1_000)
        #expect(module.headers["content-type"] == "text/javascript; charset=utf-8")
    }

    @Test func `Two requests that come at once are answered in their order`() throws {
        let browser = server.browser()
        browser.send(browser.requestText("/style.css") + browser.requestText("/"))
        #expect(browser.readAnswer()?.body == Array("p {}".utf8))
        #expect(browser.readAnswer()?.body == Array("<p>Welcome".utf8))
    }

    @Test(arguments: ["/x", "/../etc/passwd", "//", "/style.css/", "/STYLE.CSS", "/%2e"])
    func `The server has no other files`(path: String) {
        let browser = server.browser()
        #expect(browser.request(path)?.status == 404)
        #expect(browser.isAtEnd)
    }

    /// WebNamesTests has more such names.
    @Test(arguments: ["evil.example:PORT", "127.0.0.1:1", ""])
    func `The server shows nothing to a browser that was led here under another name`(host: String) {
        for path in ["/", "/nigh.js", "/x", "/nigh"] {
            let browser = server.browser()
            let answer = browser.request(path, host: host.replacing("PORT", with: "\(browser.port)"))
            #expect(answer?.status == 403, "\(path)")
            #expect(browser.isAtEnd)
        }
    }

    /// HTTPRequestReaderTests has more of what is no request.
    @Test(arguments: [
        ("POST / HTTP/1.1\r\nHost: NAME\r\nContent-Length: 0\r\n\r\n", 405),
        ("GET / HTTP/1.0\r\nHost: NAME\r\n\r\n", 505), ("GET / HTTP/1.1\r\n\r\n", 400),
        ("\u{16}\u{3}\u{1}\r\n\r\n", 400), (String(repeating: "a", count: 8_193), 431),
    ])
    func `What is no request is refused with the status for it`(text: String, status: Int) throws {
        let browser = server.browser()
        browser.send(text.replacing("NAME", with: browser.name))
        let answer = try #require(browser.readAnswer())
        #expect(answer.status == status && answer.headers["connection"] == "close")
        #expect(browser.isAtEnd)
    }

    @Test func `A connection closes when asked to, and after 100 requests`() throws {
        let browser = server.browser()
        #expect(browser.request("/", ["Connection: close"])?.headers["connection"] == "close")
        #expect(browser.isAtEnd)
        let other = server.browser()
        for number in 1...100 {
            let answer = try #require(other.request("/style.css"))
            #expect(answer.status == 200 && (answer.headers["connection"] == "close") == (number == 100))
        }
        #expect(other.isAtEnd)
    }

    @Test func `A program without a page says so`() throws {
        let server = Server(page: .none)
        let page = try #require(server.browser().request("/"))
        #expect(page.status == 200 && String(decoding: page.body, as: UTF8.self).contains("no page"))
    }

    // MARK: Deadlines

    @Test(arguments: ["", "GET / HTTP/1.1\r\nHost:"])
    func `A connection that makes no request, or none to its end, is ended`(text: String) {
        let browser = Server(times: WebTimes(request: .milliseconds(100))).browser()
        browser.send(text)
        #expect(browser.isAtEnd)
    }

    @Test func `A request that comes byte by byte, or never begins after an answer, is ended`() {
        let server = Server(times: WebTimes(request: .milliseconds(200)))
        let browser = server.browser()
        var sent = 0
        for byte in "GET / HTTP/1.1\r\nX: \(String(repeating: "a", count: 2_000))".utf8 {
            guard browser.send([byte]) == 1 else { break }
            sent += 1
            usleep(2_000)
        }
        #expect(sent < 1_900)
        let other = server.browser()
        #expect(other.request("/")?.status == 200)
        #expect(other.isAtEnd)
    }

    /// A server of one large file, and a browser that has asked for it.
    private func download(megabytes: Int, _ request: Moment.Span) -> (Server, Browser) {
        let file = ByteSlice([UInt8](repeating: 7, count: megabytes << 20))
        let page = WebPage(["/": WebPage.File(type: "text/plain", bytes: file)])
        let server = Server(page: page, times: WebTimes(request: request))
        let browser = server.browser()
        browser.send(browser.requestText("/"))
        return (server, browser)
    }

    @Test func `A file is sent to its end, however slowly the browser takes it`() {
        let (_, browser) = download(megabytes: 24, .milliseconds(200))
        var count = 0
        for _ in 0..<24 {
            usleep(40_000)
            count += browser.read(1 << 20).count
        }
        #expect(count == 24 << 20)
    }

    @Test func `A connection whose browser takes nothing of an answer is ended`() {
        let (server, browser) = download(megabytes: 32, .milliseconds(100))
        #expect(server.hasConnections(0))
        withExtendedLifetime(browser) {}
    }

    // MARK: Limits

    @Test func `The server takes 16 connections from one address, and others from other addresses`() {
        var browsers = (0..<16).map { _ in server.browser() }
        for browser in browsers { #expect(browser.request("/")?.status == 200) }
        #expect(server.browser().isAtEnd)
        #expect(server.browser(from: 2).request("/")?.status == 200)
        browsers.removeLast()
        #expect(server.hasConnections(15))
        #expect(server.browser().request("/")?.status == 200)
    }

    @Test(arguments: [false, true])
    func `Of 64 connections, one of the address with the most makes room for a new one`(haveSockets: Bool) {
        let crowd = (0..<64).map { number in
            let source = UInt32(10 + number / 16)
            return haveSockets ? server.stranger(from: source) : server.browser(from: source)
        }
        #expect(server.hasConnections(64))
        let phone = server.browser(from: 2)
        #expect(phone.request("/")?.status == 200)
        #expect(server.run { $0.connectionCount } == 64)
        // The phone is not the next to go.
        let others = [server.browser(from: 10), server.browser(from: 3)]
        #expect(others[1].request("/")?.status == 200)
        #expect(phone.request("/")?.status == 200)
        withExtendedLifetime((crowd, others)) {}
    }

    @Test func `A burst of 500 connections waits, and no attempt is dropped`() {
        let port = server.port
        server.stall {
            let start = ContinuousClock().now
            let burst = (0..<500).map { Browser(port, from: UInt32(2 + $0 % 200)) }
            let time = ContinuousClock().now - start
            #expect(time < .milliseconds(900), "\(time)")
            withExtendedLifetime(burst) {}
        }
    }

    @Test func `The server never makes room at the cost of guests`() {
        let guest = server.guest(from: 10)
        let crowd = (0..<200).map { server.browser(from: UInt32(10 + $0 % 40)) }
        #expect(server.browser(from: 2).request("/")?.status == 200)
        guest.sendFrame(2, [1, 2, 3])
        #expect(server.wait { server.pipes.first?.count == 3 })
        withExtendedLifetime(crowd) {}
    }

    // MARK: Ports

    @Test func `A named port that is in use is an error that says what to do`() throws {
        let port = server.port
        let second = Server { $0.port = port }
        #expect(second.wait { !second.failures.isEmpty })
        let error = try #require(second.failures.first)
        #expect(error.stage == .advertising && error.transport == "web")
        #expect(error.advice?.contains("port \(port) is in use") == true)
        #expect(error.advice?.contains("port=") == true)
        #expect(second.listening.isEmpty)
    }

    @Test func `Another port is taken if the usual one is in use`() {
        let servers = (0..<2).map { _ in Server { $0.port = nil } }
        #expect(servers[0].port != servers[1].port)
        #expect(servers[1].browser().request("/")?.status == 200)
    }

    @Test func `The server listens and invites while it is advertised only`() {
        let idle = server.browser()
        #expect(server.run { $0.makeInvitationNow() } != nil)
        server.run { $0.stopAdvertising() }
        #expect(idle.isAtEnd)
        #expect(server.wait { server.listening.isEmpty })
        #expect(server.run { $0.makeInvitationNow() } == nil)
        server.run { $0.advertise(Server.advertisement) }
        #expect(server.browser().request("/")?.status == 200)
    }
}
