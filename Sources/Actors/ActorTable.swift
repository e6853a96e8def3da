import Distributed
import NighCore

/// The actors of one program that its system knows. A value.
struct ActorTable {
    /// An actor that peers may call, and how.
    struct Exposure: Sendable {
        let contract: ActorContract
        let access: ActorAccess
    }

    struct Published {
        let actor: any DistributedActor
        let exposure: Exposure
    }

    private struct Entry {
        /// Nil until the actor is ready.
        weak var actor: (any DistributedActor)?
        /// The contracts under which the actor was shared, by name.
        var shared: [String: Exposure] = [:]
    }

    private var entries: [UInt64: Entry] = [:]
    private(set) var published: [String: Published] = [:]

    /// The number of actors that a program may publish, and that it follows of each peer.
    static let mostPublished = 256

    /// The number of actors that are alive.
    var count: Int { entries.count }

    /// Draws the number of an actor that is being made.
    mutating func assignNumber() -> UInt64 {
        while true {
            let number = UInt64.random(in: 1 ... .max)
            guard entries[number] == nil else { continue }
            entries[number] = Entry()
            return number
        }
    }

    mutating func setReady(_ actor: any DistributedActor, number: UInt64) { entries[number]?.actor = actor }

    /// Forgets an actor that is gone, or whose initialiser has failed.
    mutating func resign(_ number: UInt64) { entries[number] = nil }

    func actor(_ id: ActorSystem.ActorID.LocalID) -> (any DistributedActor)? {
        switch id {
        case .name(let name): published[name]?.actor
        case .number(let number): entries[number]?.actor
        }
    }

    /// Lets peers call an actor that they get a reference to.
    mutating func share(_ number: UInt64, _ exposure: Exposure) {
        entries[number]?.shared[exposure.contract.name] = exposure
    }

    /// Publishes an actor. Returns false if the name is taken.
    mutating func publish(_ actor: any DistributedActor, as name: String, _ exposure: Exposure) -> Bool {
        guard published[name] == nil else { return false }
        published[name] = Published(actor: actor, exposure: exposure)
        return true
    }

    mutating func unpublish(_ name: String) { published[name] = nil }

    mutating func removeAll() {
        entries = [:]
        published = [:]
    }

    /// Finds the actor whose method a peer calls. Returns nil as the actor if there is none, and as the exposure if it
    /// is not exposed under the contract that the method names.
    func find(
        _ id: ActorSystem.ActorID.LocalID, method: String
    ) -> (actor: (any DistributedActor)?, exposure: Exposure?) {
        switch id {
        case .name(let name):
            let entry = published[name]
            let exposure = entry?.exposure
            return (entry?.actor, exposure?.contract.isNamed(in: method) == true ? exposure : nil)
        case .number(let number):
            guard let entry = entries[number], !entry.shared.isEmpty else { return (nil, nil) }
            return (entry.actor, entry.shared.values.first { $0.contract.isNamed(in: method) })
        }
    }
}
