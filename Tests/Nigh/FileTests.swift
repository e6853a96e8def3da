import FoundationEssentials
import Nigh
import NighTestKit
import Testing

/// Files as programs send and receive them, over memory.
@Suite("A session's files", .timeLimit(.minutes(15))) struct FileTests {
    private let network = TestNetwork()
    private let outbox = TemporaryFolder()
    private let inbox = TemporaryFolder()

    /// Runs `body` with Puma, which sends, and Lynx, which receives as `acceptance` says. The outbox has the file `a`.
    private func pair(
        _ acceptance: FileAcceptance,
        _ body: (_ puma: Session, _ lynx: Session, _ asLynx: Peer) async throws -> Void
    ) async throws {
        try outbox.write("abc", to: "a")
        try await network.pair {
            $0.acceptsPairing = true
            $0.files = acceptance
        } _: { puma, lynx, asLynx in
            try await body(puma, lynx, asLynx)
        }
    }

    /// Expects that a transfer fails because the other side declines it with these words.
    private func expectDeclined(_ transfer: FileTransfer, _ words: String) async {
        let error = await #expect(throws: NighError.self) { try await transfer.finish() }
        #expect(error?.cause == .file(FileFault(.declined, words)))
    }

    @Test func `Files and folders arrive in the named folder, with progress and hashes`() async throws {
        try outbox.write("abc", to: "photos/one.txt")
        try outbox.write("", to: "photos/deep/two.txt")
        try outbox.write(String(repeating: "x", count: 3_000_000), to: "large")
        try await pair(.ask) { puma, lynx, asLynx in
            let paths = [outbox.path + "/photos", outbox.path + "/large"]
            let sending = try await asLynx.send(files: paths, metadata: [7])
            let offer = try await lynx.fileOffers.first()
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
        }
    }

    @Test func `A session that accepts no files refuses them with an error`() async throws {
        try await pair(.none) { _, _, asLynx in
            let error = await #expect(throws: NighError.self) {
                try await asLynx.send(file: outbox.path + "/a")
            }
            #expect(error?.cause == .unsupported("files"))
        }
    }

    @Test func `An offer waits for its answer, however many others are withdrawn meanwhile`() async throws {
        try outbox.write("abc", to: "last")
        try await pair(.ask) { _, lynx, asLynx in
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
            await expectDeclined(transfer, "no more cats")
        }
    }

    @Test func `Too many offers of one peer are declined, and not those of another one`() async throws {
        try await pair(.ask) { _, lynx, asLynx in
            var offers: [FileOffer] = []
            for _ in 0..<16 {
                _ = try await asLynx.send(file: outbox.path + "/a")
                offers.append(try await lynx.fileOffers.first())
            }
            let further = try await asLynx.send(file: outbox.path + "/a")
            await expectDeclined(further, "too many offers wait for an answer there")
            let hare = try network.session("Hare")
            for await case .connected(let peer) in hare.events where peer.name == "Lynx" {
                _ = try await peer.send(file: outbox.path + "/a")
                break
            }
            #expect(try await lynx.fileOffers.first().peer == hare.id)
            withExtendedLifetime(offers) {}
            await hare.close()
        }
    }

    @Test func `Files of paired peers only are accepted from the moment of the pairing`() async throws {
        try await pair(.paired(into: inbox.path)) { puma, lynx, asLynx in
            let transfer = try await asLynx.send(file: outbox.path + "/a")
            await expectDeclined(transfer, "files are accepted from paired devices only")
            #expect(inbox.names().isEmpty)
            let (events, lynxsEvents) = (puma.events, lynx.events)
            try await asLynx.pair(events, lynxsEvents)
            for await case .paired in lynxsEvents { break }
            #expect(puma.peers.first?.trust == .paired && lynx.peers.first?.trust == .paired)
            _ = try await asLynx.send(file: outbox.path + "/a").finish()
            #expect(try inbox.read("a") == "abc")
        }
    }

    @Test func `Files of everyone are received without a question`() async throws {
        try await pair(.everyone(into: inbox.path)) { puma, lynx, asLynx in
            let transfers = try await puma.send(files: [outbox.path + "/a"], to: [asLynx])
            try await transfers.first?.finish()
            let accepted = try await lynx.acceptedFiles.first()
            #expect(try await accepted.finish().first?.path == inbox.path + "/a")
            let error = await #expect(throws: NighError.self) {
                try await asLynx.send(file: outbox.path + "/missing")
            }
            #expect(error?.description.contains("missing") == true)
            let none = await #expect(throws: NighError.self) { try await asLynx.send(files: []) }
            #expect(none?.cause == .invalid("list of files: it is empty"))
        }
    }

    // MARK: Pausing and ending

    /// A transfer of a large file that the sender has paused before it was accepted, so that it ends only when a test
    /// lets it.
    private func pausedTransfer(
        _ lynx: Session, _ asLynx: Peer
    ) async throws -> (sending: FileTransfer, receiving: FileTransfer) {
        try outbox.write(String(repeating: "y", count: 2_000_000), to: "large")
        let sending = try await asLynx.send(file: "\(outbox.path)/large")
        sending.pause(because: "the battery is low")
        let receiving = try await lynx.fileOffers.first().accept(into: inbox.path)
        for await progress in receiving.updates {
            guard case .paused(let isHere, let reason) = progress.state else { continue }
            #expect(!isHere && reason == "the battery is low")
            break
        }
        return (sending, receiving)
    }

    @Test func `Either program cancels files, and the other gets the reason`() async throws {
        try await pair(.ask) { _, lynx, asLynx in
            for isSender in [true, false] {
                let (sending, receiving) = try await pausedTransfer(lynx, asLynx)
                (isSender ? sending : receiving).cancel(because: "the train leaves")
                let other = isSender ? receiving : sending
                let error = await #expect(throws: NighError.self) { try await other.finish() }
                #expect(error?.cause == .file(FileFault(.cancelled, "the train leaves")))
            }
            let (sending, receiving) = try await pausedTransfer(lynx, asLynx)
            #expect(receiving.progress.transferred == 0)
            sending.resume()
            try await receiving.finish()
            try await sending.finish()
            #expect(inbox.names() == ["large"])
            #expect(try inbox.read("large").utf8.count == 2_000_000)
        }
    }

    @Test func `Files fail with the conversation, and the error says how they continue`() async throws {
        try await pair(.ask) { _, lynx, asLynx in
            let (sending, _) = try await pausedTransfer(lynx, asLynx)
            await lynx.close()
            let error = await #expect(throws: NighError.self) { try await sending.finish() }
            #expect(error?.advice == "send the same files again, and the transfer continues where it was")
        }
    }
}

extension TemporaryFolder {
    /// Writes a file and the folders above it.
    fileprivate func write(_ text: String, to name: String) throws {
        let file = URL(filePath: "\(path)/\(name)")
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
    }

    fileprivate func read(_ name: String) throws -> String {
        String(decoding: try Data(contentsOf: URL(filePath: "\(path)/\(name)")), as: UTF8.self)
    }

    fileprivate func names() -> [String] { Self.names(in: path) }
}
