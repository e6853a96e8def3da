import NighCompatibility
import NighCore

extension SessionCore {
    /// Sends a file to a connected peer. Returns nil, after having had `completion` called with the reason, if it
    /// cannot.
    func sendResource(
        at url: URL, named name: String, to id: PeerID, completion: (((any Error)?) -> Void)?
    ) -> Progress? {
        let completed = Handover(completion)
        let queue = queue
        let finish: @Sendable ((any Error)?) -> Void = { error in
            queue.async { completed.value?(error) }
        }
        do {
            guard let member = member(id) else { throw MCError(.notConnected, "the peer is not connected") }
            guard url.isFileURL else {
                throw MCError(.unsupported, "only files can be sent, not \(url.absoluteString)")
            }
            let file = try ResourceFile(reading: url)
            // A child of the current progress, if there is one.
            let progress = Progress.counting.withLock { SteeringProgress(totalUnitCount: file.size) }
            progress.isCancellable = true
            let transfer = OutgoingResource(file, progress, finish)
            transfer.start(named: name, to: member)
            return progress
        } catch {
            finish(error)
            return nil
        }
    }

    /// Receives a file that a peer sends, and passes it to the delegate.
    func received(
        resource stream: ByteStream, named name: String, size: Int64, rest: [UInt8], from member: Member
    ) {
        let progress = SteeringProgress(parent: nil, userInfo: nil)
        progress.totalUnitCount = size
        progress.isCancellable = true
        let transfer = IncomingResource(stream, progress, size: size)
        guard
            let number = member.transfers.add({ transfer.end(.gone) })
        else { return }
        progress.steer { [weak transfer] in if case .cancel = $0 { transfer?.end(.cancelledHere) } }
        let peerID = Handover(member.peerID)
        notify {
            $1.session($0, didStartReceivingResourceWithName: name, fromPeer: peerID.value, with: progress)
        }
        transfer.receive(rest) { [self] result in
            member.transfers.remove(number)
            queue.async {
                // Explicitly optional, so that this is not the method of older programs.
                let url: URL? = try? result.get()
                var failure: (any Error)?
                if case .failure(let error) = result { failure = error }
                self.call { session, delegate in
                    delegate.session(
                        session, didFinishReceivingResourceWithName: name, fromPeer: peerID.value, at: url,
                        withError: failure)
                }
                transfer.removeFile()
            }
        }
    }
}
