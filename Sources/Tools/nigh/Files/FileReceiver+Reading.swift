import NighCore

/// Reads and hashes what is already there of a file: before more of it comes, and again at the end if another program
/// may have changed it.
extension FileReceiver {
    /// The number of bytes after which a waiting sender gets a sign of life.
    private static let reportInterval = 64 << 20

    /// Hashes what is already there of the file, checks the free space, and tells the sender to begin.
    func readBack(
        _ file: PartFile, in folder: ReceivingFolder, for reception: Reception, _ offer: FileOffer
    ) async {
        do throws(FileFailure) {
            guard try await readBack(file, for: reception, sending: .waiting) else { return }
            if let size = offer.size {
                if file.count > size { try file.resume(at: 0) }
                if let room = folder.room, size - file.count > room {
                    throw FileFailure(
                        "there is room for \(ByteCount(room)) in \(folder.path), and \(file.label) needs \(ByteCount(size - file.count)) more",
                        .noSpace, other: "there is room for \(ByteCount(room))")
                }
            }
            take(file, for: reception)
        } catch {
            stop(reception, error)
        }
    }

    /// Reads all that is there of a file, and sends `message` from time to time as a sign of life. Returns false if the
    /// sender has left.
    private func readBack(
        _ file: PartFile, for reception: Reception, sending message: FileMessage
    ) async throws(FileFailure) -> Bool {
        var reported = 0
        while try file.readBack() {
            if file.count - reported >= Self.reportInterval {
                reported = file.count
                try act(.say(message), reception)
            }
            await Task.yield()
            guard receptions[reception.peer.id] === reception else { return false }
        }
        return true
    }

    func take(_ file: any ReceivedFile, for reception: Reception) {
        reception.startedAt = LoopThread.now
        act(reception.talk.take(offset: file.count, hash: file.hash), reception)
    }

    /// Hashes what was written. If another program may have opened the file meanwhile, reads all of it once more.
    func check(_ reception: Reception) {
        guard let file = reception.file else { return }
        guard let part = file as? PartFile, !part.isUntouched else {
            return act(reception.talk.hashed(file.hash), reception)
        }
        Task { await checkAgain(part, for: reception) }
    }

    private func checkAgain(_ file: PartFile, for reception: Reception) async {
        let written = file.hash
        file.rewind()
        do throws(FileFailure) {
            let position = reception.talk.position
            guard try await readBack(file, for: reception, sending: .stored(position)) else { return }
        } catch {
            return stop(reception, error)
        }
        if file.hash != written {
            reception.error = FileFailure(
                "another program has changed \(file.label) while it came; send it again", .damaged)
        }
        act(reception.talk.hashed(file.hash), reception)
    }
}
