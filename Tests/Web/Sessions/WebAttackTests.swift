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

    @Test func `No attack is noticed by a guest or a peer, or by somebody who wants the page`() throws {
        let host = try #require(HostWithGuest(pings: true))
        defer { host.stop() }
        usleep(300_000)
        var pingCount = 0
        for (name, attack) in Self.attacks {
            let before = ProcessGauge.residentBytes
            let usual = host.takeWorst()
            let start = ContinuousClock().now
            attack(host)
            #expect(Browser(host.port, from: 250).request("/")?.status == 200, "\(name)")
            let time = ContinuousClock().now - start
            let worst = host.takeWorst()
            pingCount += worst.count
            let grown = ProcessGauge.residentBytes - before
            #expect(worst.time < Self.patience, "\(name): \(worst)")
            #expect(host.isUndisturbed, "\(name)")
            // The attackers' memory in this process counts too.
            #expect(grown < 64 << 20, "\(name): \(grown) bytes more")
            guard Self.scale > 1 else { continue }
            print(
                "attack \(name): \(time), slowest answer \(worst.time) of \(worst.count) pings "
                    + "(before: \(usual.time)), memory \(before >> 10) -> \((before + grown) >> 10) KiB")
        }
        #expect(pingCount > 0)
    }

    private static let attacks: [(String, @Sendable (HostWithGuest) -> Void)] = [
        ("sequence", sequence), ("crowd", crowd), ("slow headers", slowHeaders), ("huge frames", hugeFrames),
        ("foreign names", foreignNames), ("flooding guest", floodingGuest),
        // The last, because addresses have to wait after it.
        ("wrong tokens", wrongTokens),
    ]

    private static func source(_ number: Int) -> UInt32 { UInt32(2 + number % 200) }

    /// Connections one after another.
    private static func sequence(_ host: HostWithGuest) {
        for number in 0..<500 * scale {
            let browser = Browser(host.port, from: source(number))
            if number % 2 == 0 { #expect(browser.request("/")?.status == 200) }
        }
    }

    /// Connections at once.
    private static func crowd(_ host: HostWithGuest) {
        let crowd = (0..<250 * scale).map { Browser(host.port, from: source($0)) }
        #expect(Browser(host.port, from: 250).request("/")?.status == 200)
        withExtendedLifetime(crowd) {}
    }

    /// Headers that come slowly, from 64 addresses.
    private static func slowHeaders(_ host: HostWithGuest) {
        let browsers = (0..<64 * min(16, scale)).map { Browser(host.port, from: UInt32(2 + $0 % 64)) }
        for browser in browsers { browser.send("GET / HTTP/1.1\r\nX: ") }
        for _ in 0..<10 * min(10, scale) {
            for browser in browsers { browser.send("a") }
            usleep(50_000)
        }
        #expect(Browser(host.port, from: 250).request("/")?.status == 200)
    }

    /// Frames that claim to be huge, and messages without end.
    private static func hugeFrames(_ host: HostWithGuest) {
        for number in 0..<100 * scale {
            let browser = Browser(host.port, from: source(number))
            browser.upgrade()
            switch number % 4 {
            case 0: browser.send([0x82, 0xFF, 0x7F] + [UInt8](repeating: 0xFF, count: 11))
            case 1: browser.send(BrowserFrames.header(2, 65_536) + [UInt8](repeating: 0, count: 65_536))
            case 2: browser.send((0..<5_000).flatMap { _ in BrowserFrames.frame(9, [1, 2, 3]) } + [0x82, 0])
            default:
                browser.sendFrame(2, [], isLast: false)
                browser.send((0..<2_000).flatMap { _ in BrowserFrames.frame(0, [], isLast: false) } + [0, 0])
            }
            while browser.readFrame() != nil {}
            #expect(browser.isAtEnd)
        }
    }

    /// Pages of other origins, and names that lead here.
    private static func foreignNames(_ host: HostWithGuest) {
        for number in 0..<100 * scale {
            let browser = Browser(host.port, from: source(number))
            let foreign = "evil\(number).example:\(host.port)"
            let answer =
                switch number % 3 {
                case 0: browser.upgrade(origin: "http://\(foreign)")
                case 1: browser.upgrade(host: foreign, origin: "http://\(foreign)")
                default: browser.request("/", host: foreign)
                }
            #expect(answer?.status == 403)
        }
    }

    private static func wrongTokens(_ host: HostWithGuest) {
        _ = host.invite()
        var random = SeededGenerator(seed: 1)
        for number in 0..<1_000 * scale {
            let browser = Browser(host.port, from: source(number))
            browser.upgrade()
            let token = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(browser.enter(number, token).first == 2)
        }
        let honest = Browser(host.port, from: 251)
        honest.upgrade()
        #expect(honest.enter(60_000, host.invite()).first == 1)
    }

    /// A guest that floods the session with pings of WebSocket.
    private static func floodingGuest(_ host: HostWithGuest) {
        let browser = Browser(host.port, from: 9)
        browser.upgrade()
        #expect(browser.enter(50_000, host.invite()).first == 1)
        browser.sendFrame(2, [0x4E])
        let pings = (0..<20_000).flatMap { _ in BrowserFrames.frame(9, [1]) }
        browser.sending { browser in
            for _ in 0..<5 * scale where browser.send(pings) < pings.count { break }
            shutdown(browser.descriptor, Int32(SHUT_RDWR))
        } during: {
            while browser.readFrame() != nil {}
        }
    }
}
