import MultipeerConnectivity
import Testing

/// Rows 32 to 39 and 48 of the table in the guide: files.
@Suite("Resources", .timeLimit(.minutes(10))) final class ResourceTests {
    private let service = Device.service()
    private let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "resources-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private func connected() async -> (Device, Device) {
        let (puma, lynx) = (Device("Puma", service: service), Device("Lynx", service: service))
        await puma.connect(lynx)
        return (puma, lynx)
    }

    private func file(_ count: Int) throws -> (URL, Data) {
        let url = folder.appendingPathComponent("\(UUID().uuidString).bin")
        let data = Data(Bytes.pattern(count))
        try data.write(to: url)
        return (url, data)
    }

    /// A file that is so large that it does not arrive before a test has ended the transfer. It has no blocks on the
    /// disk.
    private func largeFile() throws -> URL {
        let (url, _) = try file(0)
        let handle = try FileHandle(forWritingTo: url)
        try handle.truncate(atOffset: 4_000_000_000)
        try handle.close()
        return url
    }

    @Test(
        "arrive as a file that exists until the delegate returns, and then the sender is told",
        arguments: [0, 3_000_000])
    func arrive(count: Int) async throws {
        let (puma, lynx) = await connected()
        let (url, data) = try file(count)
        let local = Held<URL>()
        lynx.onResource = { url, error in
            #expect(error == nil)
            if let url { local.give(url) }
        }
        let progress = Held<Progress>()
        lynx.onProgress = { progress.give($0) }
        let outcome = Held<(any Error)?>()
        let sent = try #require(
            puma.session.sendResource(at: url, withName: "film", toPeer: lynx.id) { outcome.give($0) })
        #expect(try await outcome.value() == nil)
        await lynx.wait(for: .resource(puma.id, "film", data))
        #expect(lynx.events.suffix(2) == [.began(puma.id, "film"), .resource(puma.id, "film", data)])
        #expect(sent.totalUnitCount == count && sent.completedUnitCount == count)
        #expect(try await progress.value().completedUnitCount == count)
        let gone = try await local.value()
        await look { !FileManager.default.fileExists(atPath: gone.path) }
        puma.end()
        lynx.end()
    }

    @Test("have names that lead out of no folder, and otherwise those that they were given")
    func names() async throws {
        let (puma, lynx) = await connected()
        let (url, data) = try file(1)
        let names = [
            "photos/1.jpg": "photos/1.jpg", "https://example.com/1.jpg": "https://example.com/1.jpg",
            "../../evil": "evil", "/etc/passwd": "etc/passwd", "a/../../b": "a/b", "..": "resource",
            "./": "resource", "": "resource", "film\0.mov": "film.mov", "..\u{2F}\u{301}x": "\u{301}x",
        ]
        for (sent, received) in names {
            puma.session.sendResource(at: url, withName: sent, toPeer: lynx.id)
            await lynx.wait(for: .resource(puma.id, received, data))
            #expect(lynx.events.suffix(2).first == .began(puma.id, received))
            lynx.forget()
        }
        puma.end()
        lynx.end()
    }

    @Test("have a progress that can be observed")
    func observed() async throws {
        let (puma, lynx) = await connected()
        let (url, _) = try file(3_000_000)
        let (first, last) = (Held<Double>(), Held<Double>())
        let sent = try #require(puma.session.sendResource(at: url, withName: "film", toPeer: lynx.id))
        let observation = sent.observe(\.fractionCompleted, options: [.initial, .new]) { progress, change in
            if change.oldValue == nil { first.give(progress.fractionCompleted) }
            if change.newValue == 1 { last.give(progress.fractionCompleted) }
        }
        #expect(try await first.value() <= 1)
        #expect(try await last.value() == 1)
        observation.invalidate()
        puma.end()
        lynx.end()
    }

    @Test("that the delegate moves stay there")
    func moved() async throws {
        let (puma, lynx) = await connected()
        let (url, data) = try file(100_000)
        let target = folder.appendingPathComponent("moved")
        lynx.onResource = { url, _ in
            if let url { try? FileManager.default.moveItem(at: url, to: target) }
        }
        puma.session.sendResource(at: url, withName: "film", toPeer: lynx.id)
        await lynx.wait { $0.contains { if case .resource = $0 { true } else { false } } }
        #expect(try Data(contentsOf: target) == data)
        puma.end()
        lynx.end()
    }

    @Test("count as a child of the progress that was current")
    func child() async throws {
        let (puma, lynx) = await connected()
        let (url, _) = try file(200_000)
        let parent = Progress(totalUnitCount: 10)
        let outcome = Held<(any Error)?>()
        func send() {
            parent.becomeCurrent(withPendingUnitCount: 10)
            puma.session.sendResource(at: url, withName: "film", toPeer: lynx.id) { outcome.give($0) }
            parent.resignCurrent()
        }
        send()
        _ = try await outcome.value()
        #expect(parent.fractionCompleted == 1)
        puma.end()
        lynx.end()
    }

    @Test("that one of the two sides cancels end with an error at both", arguments: [false, true])
    func cancelled(byReceiver: Bool) async throws {
        let (puma, lynx) = await connected()
        let url = try largeFile()
        let outcome = Held<(any Error)?>()
        if byReceiver { lynx.onProgress = { $0.cancel() } }
        let sent = puma.session.sendResource(at: url, withName: "film", toPeer: lynx.id) { outcome.give($0) }
        if !byReceiver {
            await lynx.wait(for: .began(puma.id, "film"))
            sent?.cancel()
        }
        #expect((try await outcome.value() as? MCError)?.code == .cancelled)
        await lynx.wait(for: .resource(puma.id, "film", nil))
        #expect((lynx.errors.first as? MCError)?.code == .cancelled)
        #expect(puma.session.connectedPeers == [lynx.id])
        puma.end()
        lynx.end()
    }

    @Test("end with an error at both sides when the peers are no longer connected")
    func disconnected() async throws {
        let (puma, lynx) = await connected()
        let url = try largeFile()
        let outcome = Held<(any Error)?>()
        puma.session.sendResource(at: url, withName: "film", toPeer: lynx.id) { outcome.give($0) }
        await lynx.wait(for: .began(puma.id, "film"))
        lynx.session.disconnect()
        #expect((try await outcome.value() as? MCError)?.code == .notConnected)
        await lynx.wait(for: .resource(puma.id, "film", nil))
        #expect((lynx.errors.first as? MCError)?.code == .notConnected)
        puma.end()
        lynx.end()
    }

    @Test("that are no file, or for nobody, are refused with an error")
    func refused() async throws {
        let (puma, lynx) = await connected()
        func outcome(_ url: URL, _ peer: MCPeerID) async throws -> NSError? {
            let held = Held<(any Error)?>()
            let progress = puma.session.sendResource(at: url, withName: "x", toPeer: peer) { held.give($0) }
            #expect(progress == nil)
            return try await held.value() as NSError?
        }
        let (url, _) = try file(1)
        let unsupported = try await outcome(try #require(URL(string: "ftp://example.com/x")), lynx.id)
        #expect(
            unsupported?.domain == MCErrorDomain && unsupported?.code == MCError.Code.unsupported.rawValue)
        #expect(try await outcome(folder.appendingPathComponent("nothing"), lynx.id) != nil)
        #expect(try await outcome(folder, lynx.id) != nil)
        let stranger = try await outcome(url, MCPeerID(displayName: "Nobody"))
        #expect(stranger?.code == MCError.Code.notConnected.rawValue)
        puma.end()
        lynx.end()
    }

    @Test("do not hold up messages")
    func messagesMeanwhile() async throws {
        let (puma, lynx) = await connected()
        let (url, data) = try file(10_000_000)
        puma.session.sendResource(at: url, withName: "film", toPeer: lynx.id)
        for index in 0..<100 {
            try puma.session.send(Data("\(index)".utf8), toPeers: [lynx.id], with: .reliable)
        }
        await lynx.wait(for: .resource(puma.id, "film", data))
        await lynx.wait { $0.filter { if case .message = $0 { true } else { false } }.count == 100 }
        #expect(lynx.messages(from: puma.id) == (0..<100).map { Data("\($0)".utf8) })
        puma.end()
        lynx.end()
    }
}
