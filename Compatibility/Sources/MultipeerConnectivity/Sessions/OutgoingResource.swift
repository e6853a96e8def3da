import NighCompatibility
import NighCore
import Synchronization

/// A file on its way to a peer. Calls `finish` once: when the peer has the whole file, or with the reason why it has
/// not.
final class OutgoingResource: Sendable {
    private struct State {
        var stream: ByteStream?
        var isOver = false
    }

    /// The byte that the receiver sends once it has written the file.
    static let receipt: UInt8 = 1

    private let file: ResourceFile
    private let progress: SteeringProgress
    private let finish: @Sendable ((any Error)?) -> Void
    private let state = Mutex(State())

    init(
        _ file: ResourceFile, _ progress: SteeringProgress,
        _ finish: @escaping @Sendable ((any Error)?) -> Void
    ) {
        self.file = file
        self.progress = progress
        self.finish = finish
    }

    func start(named name: String, to member: SessionCore.Member) {
        let transfers = member.transfers
        guard let number = transfers.add({ self.end(MCError.gone) }) else { return end(MCError.gone) }
        progress.steer { [weak self] in if case .cancel = $0 { self?.end(MCError.cancelledHere) } }
        let header = StreamHeader(sessions: member.sessions, name: name, content: .resource(size: file.size))
        member.low.openStream(named: StreamHeader.streamName, to: member.id) {
            [self] result in
            switch result {
            case .failure(let error):
                end(MCError(ofTransfer: error))
                transfers.remove(number)
            case .success(let stream):
                let isOver = state.withLock {
                    $0.stream = stream
                    return $0.isOver
                }
                if isOver {
                    transfers.remove(number)
                    return stream.cancel(because: MCError.reason(for: MCError.cancelledHere))
                }
                Task(executorPreference: QueueExecutor(label: "nigh.multipeer.resource")) { [self] in
                    await send(header, on: stream)
                    transfers.remove(number)
                }
            }
        }
    }

    private func send(_ header: StreamHeader, on stream: ByteStream) async {
        do {
            try await stream.write(header.bytes)
            while let piece = try file.read() {
                try await stream.write(piece)
                Progress.counting.withLock { progress.completedUnitCount += Int64(piece.count) }
            }
            stream.finish()
            guard let answer = try await stream.read(), answer.bytes == [Self.receipt] else {
                return end(MCError.cancelledThere)
            }
            end(nil)
        } catch let error as NighError {
            end(MCError(ofTransfer: error))
        } catch {
            end(error)
        }
    }

    /// Ends the transfer, unless it is over. The file is closed when nobody reads it any more.
    private func end(_ error: (any Error)?) {
        let (isFirst, stream) = state.withLock { state in
            defer { state.isOver = true }
            return (!state.isOver, state.stream)
        }
        guard isFirst else { return }
        if let error { stream?.cancel(because: MCError.reason(for: error)) }
        finish(error)
    }
}
