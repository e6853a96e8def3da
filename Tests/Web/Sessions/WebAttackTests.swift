import Glibc
import NighTestKit
import Testing

@testable import NighCore
@testable import NighWeb

/// Strangers of the same network attack the server, while a guest and a peer go on talking to its session.
///
/// `ATTACK_SCALE` multiplies what they do; 20 gives the numbers of the documentation.
@Suite(.serialized) struct WebAttackTests {
    private static let scale = getenv("ATTACK_SCALE").flatMap { Int(String(cString: $0)) } ?? 1
    /// Pings are answered within this time. Tests that run at the same time take most of it.
    private static let patience = Duration.seconds(2)

    /// Lets an attack happen, and expects that nobody else notices it.
    private func attack(_ name: String, _ body: (HostWithGuest) throws -> Void) throws {
        let host = try #require(HostWithGuest(pings: true))
        defer { host.stop() }
        usleep(300_000)
        let before = ProcessGauge.residentBytes
        let usual = host.takeWorst()
        let start = ContinuousClock().now
        try body(host)
        let time = ContinuousClock().now - start
        let worst = host.takeWorst()
        let grown = ProcessGauge.residentBytes - before
        #expect(worst.time < Self.patience && worst.count > 0, "\(worst)")
        #expect(host.isUndisturbed)
        // What the attackers hold in this process counts too.
        #expect(grown < 64 << 20, "\(grown) bytes more")
        guard Self.scale > 1 else { return }
        print(
            "attack \(name): \(time), slowest answer \(worst.time) of \(worst.count) pings "
                + "(before: \(usual.time)), memory \(before >> 10) -> \((before + grown) >> 10) KiB")
    }

    private static func source(_ number: Int) -> UInt32 { UInt32(2 + number % 200) }

    /// Expects that somebody who comes from elsewhere gets the page.
    private func expectPage(_ host: HostWithGuest) {
        #expect(Browser(host.port, from: 250).request("/")?.status == 200)
    }

    @Test("connections one after another")
    func sequence() throws {
        try attack("sequence") { host in
            for number in 0..<500 * Self.scale {
                let browser = Browser(host.port, from: Self.source(number))
                if number % 2 == 0 { #expect(browser.request("/")?.status == 200) }
            }
            expectPage(host)
        }
    }

    @Test("connections at once")
    func crowd() throws {
        try attack("crowd") { host in
            let crowd = (0..<250 * Self.scale).map { Browser(host.port, from: Self.source($0)) }
            expectPage(host)
            withExtendedLifetime(crowd) {}
        }
    }

    @Test("headers that come slowly, from 64 addresses")
    func slowHeaders() throws {
        try attack("slow headers") { host in
            var browsers: [Browser] = []
            for number in 0..<64 * min(16, Self.scale) {
                let browser = Browser(host.port, from: UInt32(2 + number % 64))
                browser.send("GET / HTTP/1.1\r\nX: ")
                browsers.append(browser)
            }
            for _ in 0..<10 * min(10, Self.scale) {
                for browser in browsers { browser.send([UInt8(ascii: "a")]) }
                usleep(50_000)
            }
            expectPage(host)
        }
    }

    @Test("frames that claim to be huge, and messages without end")
    func hugeFrames() throws {
        try attack("huge frames") { host in
            for number in 0..<100 * Self.scale {
                let browser = Browser(host.port, from: Self.source(number))
                browser.upgrade()
                switch number % 4 {
                case 0: browser.send([0x82, 0xFF, 0x7F] + [UInt8](repeating: 0xFF, count: 11))
                case 1: browser.send(BrowserFrames.header(2, 65_536) + [UInt8](repeating: 0, count: 65_536))
                case 2:
                    browser.send((0..<5_000).flatMap { _ in BrowserFrames.frame(9, [1, 2, 3]) } + [0x82, 0])
                default:
                    browser.sendFrame(2, [], isLast: false)
                    browser.send(
                        (0..<2_000).flatMap { _ in BrowserFrames.frame(0, [], isLast: false) } + [0, 0])
                }
                while browser.readFrame() != nil {}
                #expect(browser.isAtEnd)
            }
            expectPage(host)
        }
    }

    @Test("wrong tokens over the wire")
    func wrongTokens() throws {
        try attack("wrong tokens") { host in
            _ = host.invite()
            var random = SeededGenerator(seed: 1)
            for number in 0..<1_000 * Self.scale {
                let browser = Browser(host.port, from: Self.source(number))
                browser.upgrade()
                let token = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
                #expect(browser.enter(number, token).first == 2)
            }
            let honest = Browser(host.port, from: 250)
            honest.upgrade()
            #expect(honest.enter(60_000, host.invite()).first == 1)
        }
    }

    @Test("wrong tokens by the million, in the book of guests")
    func millionTokens() throws {
        var book = GuestBook()
        var now = Moment(nanoseconds: 0)
        var random = SeededGenerator(seed: 2)
        let count = 50_000 * Self.scale
        let start = ContinuousClock().now
        for number in 0..<count {
            if number % 1_000 == 0 {
                book.invite((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }, at: now)
            }
            let words = [random.next(), random.next()]
            let token = words.withUnsafeBytes { Array($0) }
            let entry = try #require(
                GuestEntry([1] + [UInt8](repeating: UInt8(number & 0xFF), count: 32) + token))
            now = now + .milliseconds(7)
            let result = book.enter(entry, from: "10.\(number % 3).0.\(number % 251)", at: now)
            guard case .failure = result else {
                Issue.record("token \(number) was taken")
                return
            }
        }
        if Self.scale > 1 { print("attack million tokens: \(count) in \(ContinuousClock().now - start)") }
    }

    @Test("pages of other origins, and names that lead here")
    func rebinding() throws {
        try attack("rebinding") { host in
            for number in 0..<100 * Self.scale {
                let browser = Browser(host.port, from: Self.source(number))
                let foreign = "evil\(number).example:\(host.port)"
                let answer =
                    switch number % 3 {
                    case 0: browser.upgrade(origin: "http://\(foreign)")
                    case 1: browser.upgrade(host: foreign, origin: "http://\(foreign)")
                    default: browser.request("/", host: foreign)
                    }
                #expect(answer?.status == 403)
            }
            expectPage(host)
        }
    }

    @Test("a guest that floods the session with pings of WebSocket and empty frames")
    func floodingGuest() throws {
        try attack("flooding guest") { host in
            let browser = Browser(host.port, from: 9)
            browser.upgrade()
            #expect(browser.enter(5, host.invite()).first == 1)
            browser.sendFrame(2, [0x4E])
            let pings = (0..<20_000).flatMap { _ in BrowserFrames.frame(9, [1]) }
            let reader = Background { while browser.readFrame() != nil {} }
            for _ in 0..<5 * Self.scale where browser.send(pings) < pings.count { break }
            shutdown(browser.descriptor, Int32(SHUT_RDWR))
            reader.join()
        }
    }
}
