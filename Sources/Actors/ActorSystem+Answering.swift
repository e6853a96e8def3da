import Distributed
import Nigh
import NighCalls
import NighCore

/// How a method of a contract is called on actors of one type.
struct MethodFinding: Sendable {
    struct Key: Hashable {
        let type: ObjectIdentifier
        let contract: String
        let wireName: String
    }

    /// The method, with its name for people.
    let method: ActorMethod
    /// The method that is called: if it is known, that of the actor's own type, otherwise that of the contract.
    let target: String
    /// Its figures.
    let figures: MethodStatistics.Index
}

/// The actors answer the calls of peers.
extension ActorSystem: ActorHost {
    package func answer(_ call: ActorCall) async -> CallOutcome {
        guard let id = ActorID.LocalID(streamName: call.actor) else { return .refused(.noActor, "") }
        let (actor, exposure) = state.withLock { $0.actors.find(id, method: call.method) }
        guard let actor else { return .refused(.noActor, "") }
        guard let exposure else { return .refused(.noMethod, "the actor there has another contract") }
        if let reason = exposure.access.reason(call.peer) { return .refused(.notAllowed, reason) }
        let scope = CallScope(peer: call.peer, deadline: call.deadline)
        return await CallScope.$current.withValue(scope) {
            await answer(
                call.method, on: actor, exposure.contract, call.arguments,
                ValueContext(self, peer: call.peer.id), from: call.peer)
        }
    }

    /// Answers a call of this program to an actor of its own, under a contract.
    func answerOwn(
        _ method: ActorMethod, of id: ActorID, _ arguments: ByteSlice, _ values: ValueContext
    ) async -> CallOutcome {
        let (actor, exposure) = state.withLock { $0.actors.find(id.localID, method: method.wireName) }
        guard let actor else { return .refused(.noActor, "") }
        guard let exposure else { return .refused(.noMethod, "") }
        return await answer(
            method.wireName, on: actor, exposure.contract, arguments, values, from: nil)
    }

    private func answer<Act: DistributedActor>(
        _ method: String, on actor: Act, _ contract: ActorContract, _ arguments: ByteSlice,
        _ values: ValueContext, from peer: Peer?
    ) async -> CallOutcome {
        let begin = session.loop.now
        guard let finding = find(method, on: actor, contract) else {
            return .refused(
                .noMethod, "\(contract.name) there has version \(contract.version), without this method")
        }
        let outcome: CallOutcome
        switch await execute(finding.target, on: actor, arguments, values) {
        case .value(let bytes): outcome = await opened(values, for: peer) ?? .answer(ByteSlice(bytes))
        case .failure(let error as InvocationDecoder.Unreadable):
            outcome = .refused(.unreadable, error.reason)
        case .failure(let error): outcome = .error(errors.encode(error, showsText: peer?.trust == .paired))
        }
        if peer != nil {
            let hasFailed = if case .answer = outcome { false } else { true }
            note(finding.figures, since: begin, hasFailed: hasFailed)
        }
        return outcome
    }

    /// Opens the streams of the sequences in a result. Returns the outcome if that fails.
    private func opened(_ values: ValueContext, for peer: Peer?) async -> CallOutcome? {
        guard let peer else { return nil }
        do {
            try await values.openStreams(to: peer)
            return nil
        } catch {
            return .error(errors.encode(error, showsText: peer.trust == .paired))
        }
    }

    /// Calls a method that the program has.
    private func execute<Act: DistributedActor>(
        _ target: String, on actor: Act, _ arguments: ByteSlice, _ values: ValueContext
    ) async -> ResultHandler.Result {
        let handler = ResultHandler(values)
        do {
            var decoder = try InvocationDecoder(arguments, values, substitution: Act.self)
            try await executeDistributedTarget(
                on: actor, target: RemoteCallTarget(target), invocationDecoder: &decoder, handler: handler)
            return handler.result ?? .failure(InvocationDecoder.Unreadable(reason: "no result"))
        } catch {
            return .failure(error)
        }
    }

    /// Finds a method of a contract; nil if the program has none of that name.
    ///
    /// A method of a protocol of the same module is called as one of the actor's own type: the protocol may be
    /// internal, and then an optimised build lacks the way through it, and calling would crash.
    private func find<Act: DistributedActor>(
        _ wireName: String, on actor: Act, _ contract: ActorContract
    ) -> MethodFinding? {
        let key = MethodFinding.Key(
            type: ObjectIdentifier(Act.self), contract: contract.prefix, wireName: wireName)
        if let found = state.withLock({ $0.foundMethods[key] }) { return found }
        guard let method = contract.method(named: wireName), let own = ActorContract(Act.self) else {
            return nil
        }
        var target = method.target
        if own.prefix != contract.prefix, own.module == contract.module {
            guard let ownMethod = own.method(for: method, of: contract) else { return nil }
            target = ownMethod.target
        }
        return state.withLock { state in
            let figures = state.statistics.index(of: method.name, isIncoming: true)
            let finding = MethodFinding(method: method, target: target, figures: figures)
            // Peers may write the name for people as they like, and must not fill the table.
            if wireName == method.wireName { state.foundMethods[key] = finding }
            return finding
        }
    }
}
