import Foundation
import Nigh
import NighFoundation
import Testing

/// Foundation's view of a transfer between two sessions in one process.
@Suite("The Foundation progress of a transfer", .timeLimit(.minutes(15))) struct FileTransferProgressTests {
    private let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("nigh-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder.appendingPathComponent("received"), withIntermediateDirectories: true)
        try Data(count: 3_000_000).write(to: folder.appendingPathComponent("film"))
    }

    /// Connects two sessions, offers the file, and ends them after `body`, which gets the sender's transfer and the
    /// offer.
    private func withOffer(_ body: (FileTransfer, FileOffer) async throws -> Void) async throws {
        let network = "memory:hub=test-\(UInt64.random(in: 0 ... .max))"
        func session(_ name: String) throws -> Session {
            try Session(service: "films", name: name, transports: network) { settings in
                settings.identity = .temporary
                settings.connectsAutomatically = true
                settings.files = .ask
            }
        }
        let (puma, lynx) = (try session("Puma"), try session("Lynx"))
        for await case .connected(let peer) in puma.events {
            let sending = try await peer.send(file: folder.appendingPathComponent("film").path)
            var offers = lynx.fileOffers.makeAsyncIterator()
            try await body(sending, try #require(await offers.next()))
            break
        }
        await puma.close()
        await lynx.close()
        try FileManager.default.removeItem(at: folder)
    }

    /// Waits until the condition holds; the suite's time limit ends a wait that does not.
    private func wait(until isTrue: () -> Bool) async {
        while !isTrue(), !Task.isCancelled { await Task.yield() }
    }

    @Test("reaches its end with the transfer, and counts bytes and files")
    func counts() async throws {
        try await withOffer { sending, offer in
            let sent = sending.foundationProgress()
            #expect(sent.completedUnitCount == 0 && sent.totalUnitCount == 3_000_000)
            let received = offer.transfer.foundationProgress()
            try offer.accept(into: folder.appendingPathComponent("received").path)
            try await sending.finish()
            for progress in [sent, received] {
                await wait { progress.completedUnitCount == 3_000_000 }
                #expect(progress.isFinished && progress.fractionCompleted == 1)
                await wait { progress.userInfo[.fileCompletedCountKey] as? Int == 1 }
                #expect(progress.userInfo[.fileTotalCountKey] as? Int == 1)
            }
        }
    }

    @Test("cancels the transfer, at the receiver as at the sender", arguments: [true, false])
    func cancel(byTheReceiver: Bool) async throws {
        try await withOffer { sending, offer in
            let transfer = byTheReceiver ? offer.transfer : sending
            transfer.foundationProgress().cancel()
            for side in [sending, offer.transfer] {
                await #expect(throws: NighError.self) { try await side.finish() }
            }
        }
    }

    @Test("cancels the transfer while the program blocks all threads of DispatchQueue.global(), too")
    func cancelWithoutThreads() async {
        await #expect(processExitsWith: .success) {
            try await FileTransferProgressTests().withOffer { sending, _ in
                let progress = sending.foundationProgress()
                let gate = DispatchSemaphore(value: 0)
                // More than the queue ever has.
                for _ in 0..<512 { DispatchQueue.global().async { gate.wait() } }
                progress.cancel()
                let latest = Date() + 60
                // Not by a task, which would wait for one of the threads.
                while sending.progress.state != .ended { precondition(Date() < latest) }
                for _ in 0..<512 { gate.signal() }
            }
        }
    }

    @Test("pauses the transfer and lets it go on")
    func pause() async throws {
        try await withOffer { sending, offer in
            let progress = sending.foundationProgress()
            progress.pause()
            await wait { sending.progress.state == .paused(isHere: true, reason: "") }
            try offer.accept(into: folder.appendingPathComponent("received").path)
            progress.resume()
            try await sending.finish()
            await wait { progress.isFinished }
        }
    }
}
