// Accepted pipes without a conversation: how many there may be, and which of them makes room for the next.

extension SessionMachine {
    /// The number of accepted pipes without a conversation.
    var strangerCount: Int { census.strangers }

    /// Returns whether one more pipe may come in. If all places are taken, an old pipe is closed for it.
    ///
    /// Opening pipes costs nothing, so a peer that does only this must not keep others out. There are two groups: pipes
    /// on which no whole preface has come, and pipes on which the other side has begun to say who it is. The larger
    /// group gives up its oldest pipe. So neither group can take more than half of the places from the other. An honest
    /// peer speaks as soon as its pipe is open. It loses its place only if half as many pipes as there are places come
    /// before its first bytes, or if as many begin a handshake before its own is complete. A proven key does not count,
    /// because anybody can make keys, and neither does a request for a pairing that no person has seen yet. An
    /// invitation that waits for the program has its own limit, and stays.
    mutating func hasRoomForStranger() -> Bool {
        guard strangerCount >= limits.unauthenticatedPipes else { return true }
        let waiting = links.values.filter {
            $0.isStranger
                && ($0.purpose == .unsettled
                    || $0.purpose == .pairing && $0.peer?.pairing?.isKnownToPerson != true)
        }
        let silent = waiting.filter { $0.machine.phase == .preface }
        let begun = waiting.filter { $0.machine.phase != .preface }
        let larger = silent.count >= begun.count ? silent : begun
        guard let oldest = larger.min(by: { $0.number < $1.number }) else { return false }
        statistics.pipesRefused += 1
        close(oldest, .tooManyLinks, because: .limit("unauthenticated pipes", limits.unauthenticatedPipes))
        return true
    }
}
