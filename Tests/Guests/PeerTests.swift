import Browsers
import ChildPrograms
import Foundation
import Nigh
import NighMemory
import NighTestKit
import Testing

/// The host of a page with checks. It answers each message on its lane, writes back what comes on a stream, and obeys a
/// message that begins with "do ".
final class EchoHost: Sendable {
    let session: Session
    private let tasks: [Task<Void, Never>]
    let record = Record()

    /// The peers and notes that the host has seen.
    actor Record {
        private(set) var connected: Set<PeerID> = []
        private var notes: Set<String> = []

        func note(connected peer: PeerID) { connected.insert(peer) }
        func note(_ note: String) { notes.insert(note) }

        /// Waits for at most two minutes until the host has noted this. Returns whether it has.
        func has(_ note: String) async -> Bool {
            for _ in 0..<1_200 where !notes.contains(note) { try? await Task.sleep(for: .milliseconds(100)) }
            return notes.contains(note)
        }
    }

    init() throws {
        let page = try WebPage([
            "/": Self.file("index.html", "text/html; charset=utf-8"),
            "/checks.js": Self.file("checks.js", "text/javascript; charset=utf-8"),
            "/icon.svg": WebPage.File(
                type: "image/svg+xml",
                bytes: ByteSlice(Array("<svg xmlns='http://www.w3.org/2000/svg'/>".utf8))),
        ])
        let session = try Session(service: "checks", name: "Puma", transports: "web:port=0") {
            $0.admitsUnencryptedGuests = true
            $0.page = page
            $0.identity = .temporary
            $0.printsProblems = false
        }
        self.session = session
        let record = record
        // A thread of its own, so that it does not wait for tests that block those of all tasks.
        let loop = ThreadEventLoop()
        tasks = [
            Task(executorPreference: loop) {
                for await event in session.events {
                    switch event {
                    case .invited(let invitation):
                        guard invitation.peer.trust == .guest, invitation.context == Array("yes".utf8) else {
                            invitation.decline(because: "not now", retryAfter: .seconds(7))
                            continue
                        }
                        invitation.accept()
                    case .connected(let peer): await record.note(connected: peer.id)
                    default: break
                    }
                }
            },
            Task(executorPreference: loop) {
                for await message in session.messages {
                    let text = String(decoding: message.bytes.prefix(40), as: UTF8.self)
                    if text.hasPrefix("last ") { await record.note(text) }
                    guard let peer = session.connectedPeers.first(where: { $0.id == message.sender }) else {
                        continue
                    }
                    if text.hasPrefix("do ") { await Self.obey(text.dropFirst(3), of: peer, on: loop) }
                    if !message.isReliable {
                        try? peer.sendUnreliably(bytes: message.bytes)
                    } else if !text.hasPrefix("do "), !text.hasPrefix("last ") {
                        try? await peer.send(bytes: message.bytes, on: message.origin.lane)
                    }
                }
            },
            Task(executorPreference: loop) {
                for await stream in session.streams {
                    Task(executorPreference: loop) {
                        do {
                            // A page that reads no more may still write.
                            while let bytes = try await stream.read() { try? await stream.write(bytes) }
                            stream.finish()
                        } catch {
                            await record.note((error as? NighError).map { "\($0.cause)" } ?? "\(error)")
                            stream.cancel()
                        }
                    }
                }
            },
            Task(executorPreference: loop) {
                guard let group = try? await session.join("red") else { return }
                Task(executorPreference: loop) {
                    for await message in group.messages { _ = message }
                }
                for await case .joined(_, let context) in group.events
                where context == Array("let me in".utf8) {
                    try? await group.send(bytes: Array("hello, too".utf8))
                }
            },
        ]
    }

    private static func file(_ name: String, _ type: String) throws -> WebPage.File {
        let url = URL(fileURLWithPath: "\(BuiltPackages.root)/Tests/Guests/Page/\(name)")
        return WebPage.File(type: type, bytes: ByteSlice(Array(try Data(contentsOf: url))))
    }

    private static func obey(_ order: Substring, of peer: Peer, on loop: ThreadEventLoop) async {
        let words = order.split(separator: " ")
        switch words[0] {
        case "open":
            Task(executorPreference: loop) {
                let stream = try await peer.openStream(named: "from the host")
                try await stream.write((0..<2_000_000).map { UInt8($0 % 251) })
                stream.finish()
                while try await stream.read() != nil {}
            }
        case "cancel":
            Task(executorPreference: loop) {
                let stream = try await peer.openStream(named: "from the host")
                stream.cancelWriting(because: "no more today")
                while try await stream.read() != nil {}
            }
        case "send":
            let bytes = [UInt8](repeating: 7, count: Int(words[2]) ?? 0)
            for _ in 0..<(Int(words[1]) ?? 0) { try? await peer.send(bytes: bytes) }
        case "leave":
            try? await peer.send(bytes: Array("goodbye".utf8))
            Task(executorPreference: loop) { try? await peer.disconnect() }
        default: break
        }
    }

    func close() async {
        await session.close()
        for task in tasks { await task.value }
    }
}

@Suite("The peer in JavaScript") struct PeerTests {
    @Test func `The peer in JavaScript keeps all its promises without a browser, in virtual time`() throws {
        let node = try Child(
            "/usr/bin/node", ["--test", "\(BuiltPackages.root)/Tests/Guests/Script"], patience: 300)
        let (status, errors) = try node.end()
        let failures = node.lines.filter { $0.contains("not ok") }
        #expect(status == 0, "\(failures) \(errors)")
        let passed = node.lines.compactMap { $0.wholeMatch(of: #/. pass (\d+)/#) }.first.flatMap { Int($0.1) }
        #expect(try #require(passed) > 100)
    }

    /// The names are those of the checks of sessions.
    private static let checks = [
        "everySize", "manySmall", "unreliable", "stream", "streamOfHost", "streamCancelled", "groups",
    ]

    @Test(arguments: DrivenBrowser.Kind.allCases)
    func `The peer in JavaScript keeps the promises of sessions in a browser`(kind: DrivenBrowser.Kind)
        async throws
    {
        try await withBrowser {
            let host = try EchoHost()
            let invitation = try await host.session.inviteGuest()
            let address = try #require(URL(string: invitation.url))
            let (name, port) = (try #require(address.host), try #require(address.port))
            let browser = try DrivenBrowser(kind, resolving: [name])
            let wire = try CuttableWire(toPort: port)
            try browser.open("http://\(name):\(wire.port)/")
            try browser.waitUntil("window.isReady")
            let peer: String = try browser.evaluate("enter('\(try #require(address.fragment))')")
            try Self.run("declined", in: browser)
            try browser.run("join()")
            for check in Self.checks { try Self.run(check, in: browser) }

            // A token works once, for this key.
            let other = try? browser.evaluate(
                "localStorage.clear() || enter('\(address.fragment ?? "")')", as: String.self)
            #expect(other == nil)

            if ProcessInfo.processInfo.environment["GUEST_FIGURES"] != nil {
                print(
                    browser.version, try browser.evaluate("figures().then(JSON.stringify)", as: String.self))
            }
            try browser.run("window.cutting = checks.cut().then(() => 'whole', (error) => error.message)")
            for _ in 0..<10 {
                try wire.cut()
                try browser.run("new Promise((done) => setTimeout(done, 200))")
            }
            #expect(try browser.evaluate("window.cutting", as: String.self) == "whole")
            try Self.run("leave", in: browser)
            // All of it comes before the goodbye.
            #expect(await host.record.has("last 999"))
            try browser.run("join()")
            try Self.run("hostLeaves", in: browser)
            let connected = await host.record.connected.map { "\($0)" }
            #expect(connected == [peer], "it is one peer all the time")
            #expect(await host.record.has("the stream was cancelled: changed my mind"))
            #expect(try browser.problemsBesidesCuts() == [])
            await host.close()
        }
    }

    private static func run(_ check: String, in browser: DrivenBrowser) throws {
        let outcome = try browser.evaluate(
            "checks.\(check)().then(() => 'kept', (error) => error.message)", as: String.self)
        #expect(outcome == "kept", "\(check) in \(browser.version)")
    }
}
