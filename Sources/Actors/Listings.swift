import Nigh
import NighCalls
import NighCore

/// The actors that peers have published, and the streams that list this side's actors to them.
struct Listings {
    /// An actor that a peer has published.
    struct Entry: Sendable, Equatable {
        let peer: PeerID
        let name: String
        let contract: String
        let version: UInt32
    }

    /// Chooses entries.
    struct Filter: Hashable {
        let contract: String
        let name: String?

        fileprivate func accepts(_ entry: Entry) -> Bool {
            entry.contract == contract && (name ?? entry.name) == entry.name
        }
    }

    private struct Reading {
        var last: [Entry]
        var readers = ListReaders<Entry>()
    }

    private var entries: [PeerID: [String: Entry]] = [:]
    private var inputs: [PeerID: ListingInput] = [:]
    private var readings: [Filter: Reading] = [:]
    var outputs: [PeerID: ListingOutput] = [:]

    /// The number of actors.
    var count: Int { entries.values.reduce(0) { $0 + $1.count } }

    // MARK: Peers

    mutating func setInput(_ input: ListingInput, of peer: PeerID) {
        inputs[peer] = input
        entries[peer] = nil
    }

    mutating func inputEnded(_ input: ListingInput, of peer: PeerID) {
        guard inputs[peer] === input else { return }
        inputs[peer] = nil
        entries[peer] = nil
    }

    mutating func note(_ record: ListingRecord, of peer: PeerID) throws(WireError) {
        switch record {
        case .unpublished(let name): entries[peer]?[name] = nil
        case .published(let name, let contract, let version):
            entries[peer, default: [:]][name] = Entry(
                peer: peer, name: name, contract: contract, version: version)
            guard entries[peer]?.count ?? 0 <= ActorTable.mostPublished else {
                throw .malformed("more actors than \(ActorTable.mostPublished)")
            }
        }
    }

    mutating func removeAll(of peer: PeerID) {
        inputs[peer] = nil
        outputs[peer] = nil
        entries[peer] = nil
    }

    // MARK: Readers

    private func list(_ filter: Filter) -> [Entry] {
        entries.values.joined().map(\.value).filter(filter.accepts).sorted {
            ($0.peer, $0.name) < ($1.peer, $1.name)
        }
    }

    /// Adds a reader; see `ListReaders.add`.
    mutating func read(_ filter: Filter, onEnd: @escaping @Sendable (Int) -> Void) -> AsyncStream<[Entry]> {
        let list = list(filter)
        return readings[filter, default: Reading(last: list)].readers.add(list, onEnd: onEnd)
    }

    mutating func stopReading(_ filter: Filter, _ number: Int) {
        readings[filter]?.readers.remove(number)
        if readings[filter]?.readers.isEmpty ?? false { readings[filter] = nil }
    }

    /// Gives the readers whose list has changed the new one.
    mutating func notifyReaders() {
        for (filter, reading) in readings {
            let list = list(filter)
            guard list != reading.last else { continue }
            readings[filter]?.last = list
            reading.readers.yield(list)
        }
    }

    /// Ends all sequences. The caller must hold no lock.
    func finish() {
        for reading in readings.values { reading.readers.finish() }
    }
}
