import Distributed
import Nigh
import NighCalls
import NighCore

/// A method that this program calls.
struct CalledMethod: Sendable {
    let method: ActorMethod
    /// Its figures.
    let figures: MethodStatistics.Index
}

extension ActorSystem {
    /// Calls a method with a result of an actor.
    public func remoteCall<Act: DistributedActor, Failure: Error, Success: Codable>(
        on actor: Act, target: RemoteCallTarget, invocation: inout InvocationEncoder,
        throwing: Failure.Type, returning: Success.Type
    ) async throws -> Success where Act.ID == ActorID {
        let called = try method(of: target, Act.self)
        let content = try await result(of: called, on: actor.id, invocation)
        do {
            let isOwn = actor.id.peer == peer
            let values = isOwn ? invocation.values : ValueContext(self, peer: actor.id.peer)
            var reader = try CBORSequenceReader(content, in: values)
            return try reader.next(Success.self)
        } catch {
            throw NighError(
                .calling, .invalid("result of \(called.method.name): it is no \(Success.self): \(error)"),
                peer: session.peer(actor.id.peer).label, advice: "check that both programs use the same types"
            )
        }
    }

    /// Calls a method without a result of an actor.
    public func remoteCallVoid<Act: DistributedActor, Failure: Error>(
        on actor: Act, target: RemoteCallTarget, invocation: inout InvocationEncoder, throwing: Failure.Type
    ) async throws where Act.ID == ActorID {
        _ = try await result(of: method(of: target, Act.self), on: actor.id, invocation)
    }

    private func method<Act: DistributedActor>(
        of target: RemoteCallTarget, _ type: Act.Type
    ) throws -> CalledMethod {
        if let method = state.withLock({ $0.calledMethods[target.identifier] }) { return method }
        guard let method = ActorContract(type)?.method(of: target),
            method.wireName.utf8.count <= CallRecord.longestNumberedName
        else {
            throw NighError(
                .calling, .invalid("method \(target)"),
                advice: "declare it in the protocol or the actor itself, at the top level, not private and "
                    + "not generic")
        }
        return state.withLock { state in
            let figures = state.statistics.index(of: method.name, isIncoming: false)
            let called = CalledMethod(method: method, figures: figures)
            state.calledMethods[target.identifier] = called
            return called
        }
    }

    /// Makes a call, and waits for the encoded result.
    private nonisolated(nonsending) func result(
        of called: CalledMethod, on id: ActorID, _ invocation: InvocationEncoder
    ) async throws -> ByteSlice {
        let method = called.method
        let peer = session.peer(id.peer)
        let begin = session.loop.now
        do {
            let outcome =
                id.peer == self.peer
                ? await answerOwn(method, of: id, ByteSlice(invocation.bytes), invocation.values)
                : try await outcome(of: method, on: id, at: peer, invocation)
            let content = try content(of: outcome, method, id, peer)
            note(called.figures, since: begin, hasFailed: false)
            return content
        } catch {
            note(called.figures, since: begin, hasFailed: true)
            throw error
        }
    }

    private nonisolated(nonsending) func outcome(
        of method: ActorMethod, on id: ActorID, at peer: Peer, _ invocation: InvocationEncoder
    ) async throws(NighError) -> CallOutcome {
        var timeout = timeout
        if let deadline = CallScope.current?.deadline, deadline != .never {
            let left = deadline - session.loop.now
            guard left > .zero else { throw NighError(.calling, .timedOut, peer: peer.label) }
            timeout = .nanoseconds(left.nanoseconds)
        }
        try await invocation.values.openStreams(to: peer)
        return try await calls.call(
            method.wireName, ByteSlice(invocation.bytes), at: peer, actor: id.localID.streamName,
            timeout: timeout)
    }

    /// Returns the encoded result, or throws why there is none.
    private func content(
        of outcome: CallOutcome, _ method: ActorMethod, _ id: ActorID, _ peer: Peer
    ) throws -> ByteSlice {
        func failure(_ cause: NighError.Cause, _ advice: String? = nil) -> NighError {
            NighError(.calling, cause, peer: peer.label, advice: advice)
        }
        switch outcome {
        case .answer(let content): return content
        case .error(let content): throw errors.decode(content, from: peer, of: method.name)
        case .unknownName: throw failure(.unsupported("actors"))
        case .refused(.noActor, _):
            throw failure(.unsupported("the actor \(id)"), "publish or share it there, and keep it alive")
        case .refused(.notAllowed, let words): throw failure(.declined(words))
        case .refused(.noMethod, let words):
            throw failure(
                .unsupported("the method \(method.name)"),
                words.isEmpty ? "check that both programs have the same contract" : words)
        case .refused(.unreadable, let words):
            throw failure(
                .invalid("arguments of \(method.name): \(words)"),
                "check that both programs use the same types")
        }
    }
}

extension ActorSystem.ActorID.LocalID {
    /// The name of the stream for calls to the actor.
    var streamName: String {
        switch self {
        case .name(let name): "\(ActorStream.published)\(name)"
        case .number(let number): "\(ActorStream.numbered)\(String(number, radix: 16))"
        }
    }

    init?(streamName: String) {
        let rest = streamName.utf8.dropFirst()
        switch streamName.utf8.first {
        case ActorStream.published.asciiValue where !rest.isEmpty: self = .name(String(Substring(rest)))
        case ActorStream.numbered.asciiValue:
            guard let number = UInt64(Substring(rest), radix: 16) else { return nil }
            self = .number(number)
        default: return nil
        }
    }
}
