import NighCore

/// Reads and hashes what is already there of a file: before more of it comes, and again at the end if another program
/// may have changed it.
extension FileReceiver {
    /// The number of bytes after which a waiting sender gets a sign of life.
    private static let reportInterval = 64 << 20

    /// Hashes what is already there of the file, checks the free space, and tells the sender to begin.
    func readBack(
        _ file: PartFile, in folder: ReceivingFolder, for incoming: IncomingFile, _ offer: FileOffer
    ) async {
        do throws(FileFailure) {
            guard try await readBack(file, for: incoming, sending: .waiting) else { return }
            if let size = offer.size {
                if file.count > size { try file.resume(at: 0) }
                if let room = folder.room, size - file.count > room {
                    throw FileFailure(
                        "\(folder.path) has space for \(ByteCount(room)), but \(file.label) needs \(ByteCount(size - file.count)) more",
                        .noSpace, other: "there is space for \(ByteCount(room))")
                }
            }
            accept(file, for: incoming)
        } catch {
            stop(incoming, error)
        }
    }

    /// Reads all that is there of a file, and sends `message` from time to time as a sign of life. Returns false if the
    /// sender has left.
    private func readBack(
        _ file: PartFile, for incoming: IncomingFile, sending message: FileMessage
    ) async throws(FileFailure) -> Bool {
        var reported = 0
        while try file.readBack() {
            if file.count - reported >= Self.reportInterval {
                reported = file.count
                try act(.send(message), incoming)
            }
            await Task.yield()
            guard incomingFiles[incoming.peer.id] === incoming else { return false }
        }
        return true
    }

    func accept(_ file: any ReceivedFile, for incoming: IncomingFile) {
        incoming.startedAt = LoopThread.now
        act(incoming.machine.accept(offset: file.count, hash: file.hash), incoming)
    }

    /// Hashes what was written. If another program may have opened the file meanwhile, reads all of it once more.
    func check(_ incoming: IncomingFile) {
        guard let file = incoming.file else { return }
        guard let part = file as? PartFile, !part.isUntouched else {
            return act(incoming.machine.hashed(file.hash), incoming)
        }
        Task { await checkAgain(part, for: incoming) }
    }

    private func checkAgain(_ file: PartFile, for incoming: IncomingFile) async {
        let written = file.hash
        file.rewind()
        do throws(FileFailure) {
            let position = incoming.machine.position
            guard try await readBack(file, for: incoming, sending: .stored(position)) else { return }
        } catch {
            return stop(incoming, error)
        }
        if file.hash != written {
            incoming.error = FileFailure(
                "another program changed \(file.label) during the transfer; send it again", .damaged)
        }
        act(incoming.machine.hashed(file.hash), incoming)
    }
}
