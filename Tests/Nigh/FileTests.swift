import FoundationEssentials
import Nigh
import NighTestKit
import Testing

/// Files as programs send and receive them, over memory.
@Suite("A session's files", .timeLimit(.minutes(15))) struct FileTests {
    /// Only the sessions of one test meet.
    private let network = "memory:hub=test-\(UInt64.random(in: 0 ... .max))"
    private let outbox = TemporaryFolder()
    private let inbox = TemporaryFolder()

    /// Puma, which sends, and Lynx, which receives as `acceptance` says.
    private func pair(
        _ acceptance: FileAcceptance
    ) async throws -> (puma: Session, lynx: Session, asLynx: Peer) {
        let (puma, lynx) = (try session("Puma", .none), try session("Lynx", acceptance))
        for await case .connected(let peer) in puma.events { return (puma, lynx, peer) }
        throw NighError(.conversing, .notConnected)
    }

    private func session(_ name: String, _ files: FileAcceptance) throws -> Session {
        try Session(service: "files", name: name, transports: network) { settings in
            settings.identity = .temporary
            settings.acceptsPairing = true
            settings.connectsAutomatically = true
            settings.files = files
        }
    }

    private func close(_ puma: Session, _ lynx: Session) async {
        await puma.close()
        await lynx.close()
    }

    @Test(
        "carry files and folders into a folder that the receiver names, with progress and hashes on both sides"
    )
    func files() async throws {
        try outbox.write("abc", to: "photos/one.txt")
        try outbox.write("", to: "photos/deep/two.txt")
        try outbox.write(String(repeating: "x", count: 3_000_000), to: "large")
        let (puma, lynx, asLynx) = try await pair(.ask)
        let sending = try await asLynx.send(
            files: [outbox.path + "/photos", outbox.path + "/large"], metadata: [7])
        var offers = lynx.fileOffers.makeAsyncIterator()
        let offer = try #require(await offers.next())
        #expect(offer.peer == puma.id && offer.metadata == [7] && offer.totalSize == 3_000_003)
        #expect(
            offer.items.map(\.path) == [
                "photos", "photos/deep", "photos/deep/two.txt", "photos/one.txt", "large",
            ])
        let receiving = try offer.accept(into: inbox.path)
        let received = try await receiving.finish()
        let sent = try await sending.finish()
        #expect(try inbox.read("photos/one.txt") == "abc" && inbox.read("photos/deep/two.txt") == "")
        #expect(try inbox.read("large").utf8.count == 3_000_000)
        #expect(received.map(\.hash) == sent.map(\.hash) && received.last?.path == inbox.path + "/large")
        for transfer in [sending, receiving] {
            let progress = transfer.progress
            #expect(progress.state == .ended && progress.fraction == 1 && progress.done == 3_000_003)
            #expect(progress.itemsDone == 5 && progress.itemsFailed == 0)
        }
        await close(puma, lynx)
    }

    @Test("are refused with an error by a session that accepts none")
    func none() async throws {
        try outbox.write("abc", to: "a")
        let (puma, lynx, asLynx) = try await pair(.none)
        let error = await #expect(throws: NighError.self) { try await asLynx.send(file: outbox.path + "/a") }
        #expect(error?.cause == .unsupported("files"))
        await close(puma, lynx)
    }

    @Test("are declined in the receiver's words")
    func declined() async throws {
        try outbox.write("abc", to: "a")
        let (puma, lynx, asLynx) = try await pair(.ask)
        let transfer = try await asLynx.send(file: outbox.path + "/a")
        for await offer in lynx.fileOffers {
            offer.decline(because: "no more cats")
            break
        }
        let error = await #expect(throws: NighError.self) { try await transfer.finish() }
        #expect(error?.cause == .file(FileFault(.declined, "no more cats")))
        await close(puma, lynx)
    }

    @Test("wait for the program's answer, however many other offers come and are withdrawn meanwhile")
    func withdrawn() async throws {
        try outbox.write("abc", to: "a")
        try outbox.write("abc", to: "last")
        let (puma, lynx, asLynx) = try await pair(.ask)
        let transfer = try await asLynx.send(file: outbox.path + "/a")
        for _ in 0..<20 {
            let other = try await asLynx.send(file: outbox.path + "/a")
            other.cancel()
            _ = try? await other.finish()
        }
        let last = try await asLynx.send(file: outbox.path + "/last")
        var withdrawn = 0
        for await offer in lynx.fileOffers {
            if offer.items.first?.path == "last" { break }
            if withdrawn == 0 { offer.decline(because: "no more cats") }
            withdrawn += 1
        }
        #expect(withdrawn < 20, "offers that have ended still wait")
        last.cancel()
        let error = await #expect(throws: NighError.self) { try await transfer.finish() }
        #expect(error?.cause == .file(FileFault(.declined, "no more cats")))
        await close(puma, lynx)
    }

    @Test("of a peer that makes too many offers are declined, and not those of another one")
    func tooManyOffers() async throws {
        try outbox.write("abc", to: "a")
        let (puma, lynx, asLynx) = try await pair(.ask)
        var offers: [FileOffer] = []
        for _ in 0..<16 {
            _ = try await asLynx.send(file: outbox.path + "/a")
            for await offer in lynx.fileOffers {
                offers.append(offer)
                break
            }
        }
        let further = try await asLynx.send(file: outbox.path + "/a")
        let error = await #expect(throws: NighError.self) { try await further.finish() }
        #expect(
            error?.cause == .file(FileFault(.declined, "too many offers wait for an answer there")))
        let hare = try session("Hare", .none)
        for await case .connected(let peer) in hare.events where peer.name == "Lynx" {
            _ = try await peer.send(file: outbox.path + "/a")
            break
        }
        for await offer in lynx.fileOffers {
            #expect(offer.peer == hare.id)
            break
        }
        withExtendedLifetime(offers) {}
        await hare.close()
        await close(puma, lynx)
    }

    @Test("of a peer that is not paired are declined where only paired peers' files are accepted")
    func unpaired() async throws {
        try outbox.write("abc", to: "a")
        let (puma, lynx, asLynx) = try await pair(.paired(into: inbox.path))
        let transfer = try await asLynx.send(file: outbox.path + "/a")
        let error = await #expect(throws: NighError.self) { try await transfer.finish() }
        #expect(error?.cause == .file(FileFault(.declined, "files are accepted from paired devices only")))
        #expect(inbox.names().isEmpty)
        await close(puma, lynx)
    }

    @Test("of a peer that is paired during the conversation are accepted from then on")
    func pairedMeanwhile() async throws {
        try outbox.write("abc", to: "a")
        let (puma, lynx, asLynx) = try await pair(.paired(into: inbox.path))
        let (events, lynxsEvents) = (puma.events, lynx.events)
        try await asLynx.pair(events, lynxsEvents)
        for await case .paired in lynxsEvents { break }
        #expect(puma.peers.first?.trust == .paired && lynx.peers.first?.trust == .paired)
        _ = try await asLynx.send(file: outbox.path + "/a").finish()
        #expect(try inbox.read("a") == "abc")
        await close(puma, lynx)
    }

    @Test("are received without a question where everybody's are, and what cannot be sent is named")
    func everyone() async throws {
        try outbox.write("abc", to: "a")
        let (puma, lynx, asLynx) = try await pair(.everyone(into: inbox.path))
        let transfers = try await puma.send(files: [outbox.path + "/a"], to: [asLynx])
        try await transfers.first?.finish()
        for await transfer in lynx.acceptedFiles {
            #expect(try await transfer.finish().first?.path == inbox.path + "/a")
            break
        }
        let error = await #expect(throws: NighError.self) {
            try await asLynx.send(file: outbox.path + "/missing")
        }
        #expect(error?.description.contains("missing") == true)
        let none = await #expect(throws: NighError.self) { try await asLynx.send(files: []) }
        #expect(none?.cause == .invalid("list of files: it is empty"))
        await close(puma, lynx)
    }

    /// A transfer that the sender has paused before it was accepted, so that it ends only when a test lets it.
    private func pausedTransfer(
        of name: String, to asLynx: Peer, _ offers: inout Incoming<FileOffer>.Iterator
    ) async throws -> (sending: FileTransfer, receiving: FileTransfer) {
        let sending = try await asLynx.send(file: "\(outbox.path)/\(name)")
        sending.pause(because: "the battery is low")
        let receiving = try #require(await offers.next()).accept(into: inbox.path)
        for await progress in receiving.updates {
            guard case .paused(let isHere, let reason) = progress.state else { continue }
            #expect(!isHere && reason == "the battery is low")
            break
        }
        return (sending, receiving)
    }

    @Test("are cancelled by either program, whose reason the other gets, and arrive when sent again")
    func cancelled() async throws {
        try outbox.write(String(repeating: "y", count: 4_000_000), to: "large")
        let (puma, lynx, asLynx) = try await pair(.ask)
        var offers = lynx.fileOffers.makeAsyncIterator()
        for isSender in [true, false] {
            let (sending, receiving) = try await pausedTransfer(of: "large", to: asLynx, &offers)
            (isSender ? sending : receiving).cancel(because: "the train leaves")
            let other = isSender ? receiving : sending
            let error = await #expect(throws: NighError.self) { try await other.finish() }
            #expect(error?.cause == .file(FileFault(.cancelled, "the train leaves")))
        }
        let sending = try await asLynx.send(file: outbox.path + "/large")
        let receiving = try #require(await offers.next()).accept(into: inbox.path)
        try await receiving.finish()
        try await sending.finish()
        #expect(inbox.names() == ["large"])
        #expect(try inbox.read("large").utf8.count == 4_000_000)
        await close(puma, lynx)
    }

    @Test("stop while a program pauses them, and go on after that")
    func paused() async throws {
        try outbox.write(String(repeating: "z", count: 2_000_000), to: "large")
        let (puma, lynx, asLynx) = try await pair(.ask)
        var offers = lynx.fileOffers.makeAsyncIterator()
        let (sending, receiving) = try await pausedTransfer(of: "large", to: asLynx, &offers)
        #expect(receiving.progress.transferred == 0)
        sending.resume()
        try await receiving.finish()
        try await sending.finish()
        await close(puma, lynx)
    }

    @Test("fail with the conversation, and say that they continue when they are sent again")
    func conversationEnds() async throws {
        try outbox.write(String(repeating: "z", count: 2_000_000), to: "large")
        let (puma, lynx, asLynx) = try await pair(.ask)
        var offers = lynx.fileOffers.makeAsyncIterator()
        let (sending, _) = try await pausedTransfer(of: "large", to: asLynx, &offers)
        await lynx.close()
        let error = await #expect(throws: NighError.self) { try await sending.finish() }
        #expect(error?.advice == "send the same files again, and the transfer continues where it was")
        await puma.close()
    }
}

extension TemporaryFolder {
    /// Writes a file and the folders above it.
    fileprivate func write(_ text: String, to name: String) throws {
        let file = "\(path)/\(name)"
        let folder = file.split(separator: "/").dropLast().joined(separator: "/")
        try FileManager.default.createDirectory(atPath: "/" + folder, withIntermediateDirectories: true)
        try Data(text.utf8).write(to: URL(filePath: file))
    }

    fileprivate func read(_ name: String) throws -> String {
        String(decoding: try Data(contentsOf: URL(filePath: "\(path)/\(name)")), as: UTF8.self)
    }

    fileprivate func names() -> [String] { Self.names(in: path) }
}
