import NighCompatibility
import NighCore
import Synchronization

/// A file on its way from a peer.
final class IncomingResource: Sendable {
    private let stream: ByteStream
    private let progress: Progress
    private let size: Int64
    private let folder: URL
    /// Why the transfer ends before the file is complete.
    private let reason = Mutex<MCError?>(nil)

    init(_ stream: ByteStream, _ progress: Progress, size: Int64) {
        self.stream = stream
        self.progress = progress
        self.size = size
        folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "multipeer-\(UUID().uuidString)")
    }

    /// Gives the transfer up.
    func end(_ error: MCError) {
        reason.withLock { if $0 == nil { $0 = error } }
        stream.cancel(because: MCError.reason(for: error))
    }

    /// Receives the file, and calls `completion` once.
    func receive(_ rest: [UInt8], completion: @escaping @Sendable (Result<URL, any Error>) -> Void) {
        Task(executorPreference: QueueExecutor(label: "nigh.multipeer.resource")) {
            do {
                let url = try await self.receive(rest)
                completion(.success(url))
            } catch {
                self.stream.cancel(because: "not received")
                completion(.failure(self.reason.withLock { $0 } ?? Self.readable(error)))
            }
        }
    }

    private func receive(_ rest: [UInt8]) async throws -> URL {
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let url = folder.appendingPathComponent("resource")
        let file = try ResourceFile(creating: url, size: size)
        do {
            var count = try write(ByteSlice(rest), to: file, after: 0)
            while let piece = try await stream.read() { count = try write(piece, to: file, after: count) }
            guard count == size else { throw MCError.cancelledThere }
        } catch {
            try? file.close()
            throw error
        }
        try file.close()
        if let reason = reason.withLock({ $0 }) { throw reason }
        try await stream.write([OutgoingResource.receipt])
        stream.finish()
        return url
    }

    private func write(_ piece: ByteSlice, to file: ResourceFile, after count: Int64) throws -> Int64 {
        guard count + Int64(piece.count) <= size else {
            throw MCError(.cancelled, "the file is longer than announced")
        }
        try piece.withUnsafeBytes { try file.write($0) }
        Progress.counting.withLock { progress.completedUnitCount = count + Int64(piece.count) }
        return count + Int64(piece.count)
    }

    private static func readable(_ error: any Error) -> any Error {
        (error as? NighError).map { MCError(ofTransfer: $0) } ?? error
    }

    /// Removes the file if the program has not moved it away.
    func removeFile() { try? FileManager.default.removeItem(at: folder) }
}
