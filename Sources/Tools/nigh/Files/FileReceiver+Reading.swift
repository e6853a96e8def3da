import NighCore

/// What is there of a file already, read and hashed before more of it comes, and once more where others may have changed it.
extension FileReceiver {
    /// How often those who wait meanwhile are told that somebody is there.
    private static let tellEvery = 64 << 20

    /// Finds out what is there of the file, then says that it may come.
    func readBack(
        _ file: PartFile, in folder: ReceivingFolder, for reception: Reception, _ offer: FileOffer
    ) async {
        do throws(FileFailure) {
            guard try await readBack(file, for: reception, telling: .waiting) else { return }
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

    /// Reads all that is there of a file, and tells the sender meanwhile that somebody is; false where the sender has gone.
    private func readBack(
        _ file: PartFile, for reception: Reception, telling message: FileMessage
    ) async throws(FileFailure) -> Bool {
        var told = 0
        while try file.readBack() {
            if file.count - told >= Self.tellEvery {
                told = file.count
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

    /// Finds the hash of what is there. Where others have opened the file meanwhile, all of it is read once more.
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
            guard try await readBack(file, for: reception, telling: .stored(position)) else { return }
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
