import NighCalls
import NighCore

extension Session {
    /// Answers the questions of this name that peers ask with ``Peer/ask(_:_:for:timeout:)``. Values travel as messages
    /// of values do.
    ///
    ///     try session.answer("square") { (number: Int, _) in number * number }
    ///
    /// Register the answers before peers connect: a question that nobody answers fails at once. Each question is
    /// answered in a task of its own; those of one peer begin in the order in which they came, and at most 256 of them
    /// are worked on at once. The task is cancelled if the peer waits no longer, because it has cancelled the question,
    /// its timeout has passed, or the conversation has ended.
    ///
    /// If `answer` throws an error that is `Encodable`, the peer gets its value, always as JSON; see
    /// ``NighError/value(of:)``. Of other errors the peer learns only that there was one. The same holds for an answer
    /// that is longer than the peer's `limits.message`, which the session reports as a problem.
    ///
    /// Fails if the session answers questions of this name already.
    ///
    /// - Parameter name: 1 to 255 bytes without control characters.
    public func answer<Question: Decodable & Sendable, Answer: Encodable & Sendable>(
        _ name: String,
        with answer: @escaping @Sendable (_ question: Question, _ peer: Peer) async throws -> Answer
    ) throws(NighError) {
        let session = reference
        try required(Calls.self, "questions").answer(name) { content, peer in
            let question: Question
            do throws(NighError) {
                question = try session.decode(Question.self, from: content, sender: peer)
            } catch {
                session.report(.messageUnreadable(peer, error))
                return .error(ByteSlice([]))
            }
            do {
                return .answer(ByteSlice(try session.encode(try await answer(question, peer))))
            } catch let error as any Encodable {
                return .error(ByteSlice((try? JSONCoder().encode(error)) ?? []))
            } catch {
                session.layer(EventLog.self)?.questionFailed(name, of: peer, error)
                return .error(ByteSlice([]))
            }
        }
    }

    /// Answers questions of this name no longer. Those that have begun are still answered.
    public func stopAnswering(_ name: String) { layer(Calls.self)?.stopAnswering(name) }
}

extension Peer {
    /// Asks the peer's program, and waits for the answer, which it gives with ``Session/answer(_:with:)``.
    ///
    ///     let square = try await peer.ask("square", 12, for: Int.self)
    ///
    /// The question is answered at most once, also when the link breaks and another link takes over. If the
    /// conversation ends before the answer comes, the cause is `answerLost`: the peer may have acted on the question.
    /// If the peer's program throws, it is `answeredWithError`, and ``NighError/value(of:)`` reads that error. If the
    /// task is cancelled, the call fails at once, and the peer's task for the question is cancelled.
    ///
    /// - Parameter timeout: how long to wait for the answer, also while questions before it wait at the peer; nil waits
    ///   until it comes or the conversation ends.
    public nonisolated(nonsending) func ask<Answer: Decodable>(
        _ name: String, _ question: some Encodable, for type: Answer.Type = Answer.self,
        timeout: Duration? = .seconds(30)
    ) async throws(NighError) -> Answer {
        guard let calls = session.layer(Calls.self) else {
            throw NighError(
                .asking, isOfClosedSession ? .closed : .unsupported("questions"), peer: label,
                advice: isOfClosedSession ? nil : "make this session by its service")
        }
        let content = ByteSlice(try session.encode(question, to: self))
        switch try await calls.call(name, content, at: self, timeout: timeout) {
        case .answer(let answer): return try session.decode(type, from: answer, sender: self)
        case .error(let content): throw NighError(.asking, .answeredWithError(content.bytes), peer: label)
        case .unknownName, .refused:
            throw NighError(
                .asking, .unsupported("the question \"\(name)\""), peer: label,
                advice: "let that program call `answer` with this name before it connects")
        }
    }
}

extension NighError {
    /// The error with which a peer's program has answered a question, if it is of this type.
    public func value<Failure: Decodable & Error>(of type: Failure.Type) -> Failure? {
        guard case .answeredWithError(let bytes) = cause else { return nil }
        return try? JSONCoder().decode(type, from: ByteSlice(bytes))
    }
}
