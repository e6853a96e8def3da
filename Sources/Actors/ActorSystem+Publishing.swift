import Distributed
import Nigh
import NighCalls
import NighCore

extension ActorSystem {
    /// Publishes an actor under a name, so that peers find and call it. The system keeps the actor until it is
    /// unpublished or the session has closed.
    ///
    ///     try actors.publish(table, as: "board", through: $Board.self)
    ///
    /// - Parameters:
    ///   - name: 1 to 254 bytes without control characters.
    ///   - contract: The methods that peers may call: for a protocol `Board` with `@Resolvable` it is `$Board.self`.
    ///   - access: The peers that may see and call the actor.
    public func publish<Act: DistributedActor, Contract: DistributedActor>(
        _ actor: Act, as name: String, through contract: Contract.Type, for access: ActorAccess = .everyone
    ) throws(NighError) where Act.ActorSystem == ActorSystem, Contract.ActorSystem == ActorSystem {
        let exposure = try exposure(of: actor, through: contract, access)
        guard ActorStream.isName(name) else {
            throw NighError(
                .configuring, .invalid("name of an actor: \"\(name)\""),
                advice: "use 1 to 254 bytes and no control characters")
        }
        try state.withLock { state throws(NighError) in
            guard !state.isClosed else { throw NighError(.configuring, .closed) }
            guard state.actors.published.count < ActorTable.mostPublished else {
                throw NighError(
                    .configuring, .limit("published actors", ActorTable.mostPublished),
                    advice: "publish one actor that gives references to the others")
            }
            guard state.actors.publish(actor, as: name, exposure) else {
                throw NighError(
                    .configuring, .invalid("name of an actor: \"\(name)\" is published already"),
                    advice: "use another name, or unpublish that actor first")
            }
        }
        refreshListings()
    }

    /// Publishes an actor with all methods of its type, which both programs have.
    public func publish<Act: DistributedActor>(
        _ actor: Act, as name: String, for access: ActorAccess = .everyone
    ) throws(NighError) where Act.ActorSystem == ActorSystem {
        try publish(actor, as: name, through: Act.self, for: access)
    }

    /// Ends the publication of an actor. Calls that have begun go on, and further ones fail.
    public func unpublish(_ name: String) {
        // Outside of the lock: if nobody else keeps the actor, its end resigns its ID.
        let actor = state.withLock { state in
            defer { state.actors.unpublish(name) }
            return state.actors.published[name]?.actor
        }
        withExtendedLifetime(actor) {}
        refreshListings()
    }

    /// Makes a reference to an actor of this program, to be passed to peers as an argument or a result. A program that
    /// has it may call the methods of the contract, as long as the actor lives.
    ///
    ///     try await board.join(try actors.share(me, through: $Player.self))
    ///
    /// - Parameters:
    ///   - contract: The methods that peers may call: for a protocol `Player` with `@Resolvable` it is `$Player.self`.
    ///   - access: The peers that may call the actor.
    public func share<Act: DistributedActor, Contract: DistributedActor>(
        _ actor: Act, through contract: Contract.Type, for access: ActorAccess = .everyone
    ) throws(NighError) -> Contract
    where Act.ActorSystem == ActorSystem, Contract.ActorSystem == ActorSystem {
        guard actor.id.peer == peer, case .number(let number) = actor.id.localID else {
            throw NighError(
                .configuring, .invalid("actor to share: it is one of a peer"), advice: "pass it on as it is")
        }
        let exposure = try exposure(of: actor, through: contract, access)
        state.withLock { $0.actors.share(number, exposure) }
        do {
            return try contract.resolve(id: actor.id, using: self)
        } catch {
            throw error as? NighError ?? NighError(.configuring, .invalid("actor to share: \(error)"))
        }
    }

    private func exposure<Act: DistributedActor, Contract: DistributedActor>(
        of actor: Act, through type: Contract.Type, _ access: ActorAccess
    ) throws(NighError) -> ActorTable.Exposure {
        guard let contract = ActorContract(type) else {
            throw NighError(
                .configuring, .invalid("contract \(type)"),
                advice: "declare it at the top level, not private and not generic")
        }
        guard type == Act.self || contract.isMet(by: actor) else {
            throw NighError(
                .configuring, .invalid("contract \(contract.name): \(Act.self) does not conform to it"),
                advice: "conform to the protocol, and name it with a dollar sign in front, as in $Board.self")
        }
        return ActorTable.Exposure(contract: contract, access: access)
    }

    /// A reference to the actor that a peer has published under this name. Does not ask the peer: if there is none, its
    /// calls fail. `Contract` is `$Board` for a protocol `Board` with `@Resolvable`, or the type of the actor.
    public func actor<Contract: DistributedActor>(
        _ contract: Contract.Type, named name: String, on peer: Peer
    ) throws(NighError) -> Contract where Contract.ActorSystem == ActorSystem {
        guard ActorStream.isName(name) else {
            throw NighError(
                .calling, .invalid("name of an actor: \"\(name)\""), peer: peer.label,
                advice: "use 1 to 254 bytes and no control characters")
        }
        do {
            return try contract.resolve(id: ActorID(peer: peer.id, localID: .name(name)), using: self)
        } catch {
            throw error as? NighError ?? NighError(.calling, .invalid("actor \"\(name)\": \(error)"))
        }
    }
}
