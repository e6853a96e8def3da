import NighCalls
import NighCore
import NighTestKit

// Questions that users ask each other's programs and actors, and the rules that the answers must keep.

extension World {
    private static let questionNames = ["square", "root"]
    private static let actorNames = ["@red", "@blue", "#7"]
    private static let methodNames = ["move", "look", String(repeating: "long", count: 200)]
    /// Why no actor is called where there are none.
    private static let actorsMissing = CallOutcome.refused(.noActor, "the program there has no actors")

    /// Whether a user's session has questions. The others are as peers of an earlier version.
    func hasQuestions(_ index: Int) -> Bool { hasStreams && (seed &+ UInt64(index)) % 6 != 2 }

    /// Whether a user's program has actors, sooner or later.
    private func hasActors(_ index: Int) -> Bool { hasQuestions(index) && (seed &+ UInt64(index)) % 5 != 3 }

    /// Whether a user's program answers questions of this name.
    private func answers(_ name: String, _ index: Int) -> Bool {
        name == Self.questionNames[0] || index.isMultiple(of: 2)
    }

    /// Lets the program of a run answer questions, and its user ask some now and then.
    func scheduleQuestions(_ run: SessionRun) {
        guard let questions = run.questions else { return }
        for name in Self.questionNames where answers(name, run.index) {
            let isNew =
                (try? questions.layer.answer(name) { [weak self, weak run] content, peer in
                    guard let self, let run else { return .unknownName }
                    return await answer(content, named: name, from: peer, by: run)
                }) != nil
            if !isNew { run.report(.calls, "cannot answer \(name)") }
        }
        scheduleActors(run)
        scheduleAsking(run)
    }

    /// Gives the program of a run its actors, at once or when it is called already.
    private func scheduleActors(_ run: SessionRun) {
        guard let questions = run.questions, hasActors(run.index) else { return }
        let delay: Duration = questionGenerator.chance(70) ? .zero : questionGenerator.milliseconds(1...3_000)
        schedule(after: delay) { [self] in
            guard run.session != nil, !run.isClosing else { return }
            let actors = WorldActors(of: run) { [weak self, weak run] call in
                guard let self, let run else { return .unknownName }
                return await answer(
                    call.arguments, named: call.method, to: call.actor, from: call.peer, by: run,
                    until: call.deadline)
            }
            guard (try? questions.layer.add(actors)) != nil else {
                return run.report(.calls, "cannot add actors")
            }
            questions.hasActorsSince = loop.now
        }
    }

    private func scheduleAsking(_ run: SessionRun) {
        schedule(after: questionGenerator.milliseconds(30...1_000)) { [self] in
            guard !isQuiet, run.session != nil, !run.isClosing else { return }
            if let other = questionGenerator.pick(run.streams.keys.sorted()) { askQuestions(run, other) }
            scheduleAsking(run)
        }
    }

    // MARK: Asking

    /// Asks right after a change, while other parts of the session may not have followed yet.
    func askInHandler(_ run: SessionRun, _ other: Int) {
        if run.questions != nil, questionGenerator.chance(30) { askQuestions(run, other) }
    }

    /// Lets a user ask another one, seldom many questions at once.
    private func askQuestions(_ run: SessionRun, _ other: Int) {
        // It seldom tries what the other one does not support.
        let isSupported = hasQuestions(other) && haveStreams(run.index, other)
        guard isSupported || questionGenerator.chance(10) else { return }
        let isWide = hasWideStreams(run.index, other)
        let count = isWide && questionGenerator.chance(4) ? 300 : questionGenerator.number(1...5)
        let actor = pickActor(of: other, for: run)
        let isOneActor = questionGenerator.chance(50)
        for _ in 0..<questionGenerator.number(1...count) {
            ask(
                run, other, of: isOneActor ? actor : pickActor(of: other, for: run),
                isWide: isWide && count < 300)
        }
    }

    /// Chooses whom to ask: an actor, or with nil the program.
    private func pickActor(of other: Int, for run: SessionRun) -> String? {
        // The channels have two streams, and one is for questions to the program.
        guard keepsStreams(3 + Self.actorNames.count, from: run.index, to: other),
            questionGenerator.chance(hasActors(other) ? 50 : 10)
        else { return nil }
        return questionGenerator.pick(Self.actorNames)
    }

    private func ask(_ run: SessionRun, _ other: Int, of actor: String?, isWide: Bool) {
        let timeout: Duration? =
            switch questionGenerator.number(0...99) {
            case 0..<30: nil
            case 30..<45: questionGenerator.milliseconds(1...300)
            default: questionGenerator.milliseconds(300...8_000)
            }
        let isCancelled = questionGenerator.chance(15)
        var work = WorldQuestion.Work()
        switch questionGenerator.number(0...99) {
        case 0..<45: work.delay = .zero
        case 45..<80: work.delay = questionGenerator.milliseconds(1...300)
        case 80..<90: work.delay = questionGenerator.milliseconds(300...4_000)
        default:
            // The work must end some time.
            if timeout == nil, !isCancelled { work.delay = .seconds(4) }
        }
        work.isStubborn = work.delay != nil && questionGenerator.chance(20)
        work.size = size(isWide: isWide)
        switch questionGenerator.number(0...99) {
        case 0..<20: work.result = .error
        case 20..<40:
            guard actor != nil, let reason = questionGenerator.pick(CallRefusal.allCases) else { break }
            work.result = .refusal(reason)
            work.delay = .zero
        default: break
        }
        let names = actor == nil ? Self.questionNames : Self.methodNames
        let question = begin(
            run, other, named: questionGenerator.pick(names) ?? "", of: actor, size: size(isWide: isWide),
            timeout: timeout, work)
        guard isCancelled, let question else { return }
        schedule(after: questionGenerator.milliseconds(0...1_500)) {
            question.isCancelled = true
            question.task?.cancel()
        }
    }

    private func size(isWide: Bool) -> Int {
        switch questionGenerator.number(0...99) {
        case 0..<80: questionGenerator.number(0...200)
        case 95... where isWide: questionGenerator.number(5_001...60_000)
        case 80... where isWide: questionGenerator.number(200...5_000)
        default: questionGenerator.number(200...1_000)
        }
    }

    /// Begins a question. Returns nil if there is nobody to ask, or if the other user allows too few streams.
    @discardableResult
    private func begin(
        _ run: SessionRun, _ other: Int, named name: String, of actor: String?, size: Int,
        timeout: Duration?, _ work: WorldQuestion.Work
    ) -> WorldQuestion? {
        guard let questions = run.questions, let stream = run.streams[other], let session = run.session,
            keepsStreams(1, from: run.index, to: other)
        else { return nil }
        let question = WorldQuestion(
            number: worldQuestions.count, name: name, of: actor, from: run, to: other, stream,
            size: max(size, WorldQuestion.headerLength), timeout: timeout, at: loop.now, work: work)
        worldQuestions.append(question)
        questions.waiting[question.number] = question
        if actor == nil { counts.questions += 1 } else { counts.actorCalls += 1 }
        run.note(
            .call, other, question.number,
            "asks \(actor ?? "the program") of \(other) \(name.prefix(8)), question \(question.number)")
        let task = Task(executorPreference: loop) {
            [self, layer = questions.layer, peer = session.peer(id(other))] in
            do throws(NighError) {
                let outcome = try await layer.call(
                    name, ByteSlice(question.content), at: peer, actor: actor, timeout: timeout)
                if has(.losesOutcomes, question) { return }
                answered(question, outcome)
            } catch {
                failed(question, error)
            }
        }
        question.task = task
        run.tasks.append(task)
        return question
    }

    /// Notes that a question is over. Returns whether its asker is there.
    private func end(_ question: WorldQuestion, _ words: @autoclosure () -> String) -> Bool {
        let asker = question.asker
        asker.note(.outcome, question.other, question.number, "question \(question.number): \(words())")
        question.isOver = true
        question.task = nil
        asker.questions?.waiting[question.number] = nil
        if loop.now > question.deadline, !asker.wasKilled {
            asker.report(.calls, "question \(question.number) ends after \(question.deadline)")
        }
        return !asker.wasKilled
    }

    private func answered(_ question: WorldQuestion, _ outcome: CallOutcome) {
        guard end(question, "\(outcome)".prefix(12).description) else { return }
        let isOfActor = question.actor != nil
        if isOfActor { counts.actorAnswers += 1 } else { counts.answers += 1 }
        let isKnown = isOfActor || answers(question.name, question.other)
        if outcome == .unknownName {
            guard isKnown else { return }
            return question.asker.report(.calls, "\(question.other) does not know \(question.name)")
        }
        if isOfActor, outcome == Self.actorsMissing {
            guard question.begun > 0 || hadActors(question) else { return }
            return question.asker.report(
                .calls, "question \(question.number) finds no actors at \(question.other)")
        }
        guard isKnown, question.begun > 0, outcome == question.given, outcome == question.outcome else {
            return question.asker.report(
                .order, "question \(question.number) gets an answer that is not its own")
        }
    }

    /// Whether the program that was asked had its actors when the question was made.
    private func hadActors(_ question: WorldQuestion) -> Bool {
        let receivers = question.receiver.map { [$0] } ?? peers[question.other].runs
        return receivers.allSatisfy { $0.questions?.hasActorsSince ?? .never <= question.begin }
    }

    /// Checks why there is no answer.
    private func failed(_ question: WorldQuestion, _ error: NighError) {
        guard end(question, "\(error)") else { return }
        let (run, other) = (question.asker, question.other)
        let hasEnded = mayHaveEnded(
            for: run, with: other, question.receiver, since: question.conversation)
        switch error.cause {
        case .cancelled where question.isCancelled: return
        case .timedOut where loop.now == question.deadline: return
        case .answerLost where hasEnded: return
        case .unsupported where !hasQuestions(other) || !haveStreams(run.index, other): break
        case .limit(_, let limit) where limit == peers[other].member.limits.streams: break
        case _ where hasEnded: break
        default: run.report(.calls, "question \(question.number) to \(other) fails: \(error)")
        }
        question.wasNeverSent = true
        if question.begun > 0 {
            run.report(.calls, "question \(question.number) was worked on, and fails: \(error)")
        }
    }

    // MARK: Answering

    /// Whether a fault is planted in a question.
    private func has(_ kind: QuestionFault.Kind, _ question: WorldQuestion) -> Bool {
        questionFault?.kind == kind && questionFault?.isOfActors == (question.actor != nil)
    }

    /// Works on a question.
    private func answer(
        _ content: ByteSlice, named name: String, to actor: String? = nil, from peer: Peer,
        by run: SessionRun, until deadline: Moment? = nil
    ) async -> CallOutcome {
        let bytes = content.bytes
        guard let number = WorldQuestion.number(of: bytes), worldQuestions.indices.contains(number),
            case let question = worldQuestions[number], question.content == bytes, question.name == name,
            question.actor == actor, question.other == run.index, index(of: peer.id) == question.asker.index
        else {
            run.report(.order, "is asked \(bytes.count) bytes that nobody asks")
            return .unknownName
        }
        if let deadline { check(deadline, of: question, at: run) }
        if has(.beginsTwice, question) { _ = await work(on: question, by: run) }
        if has(.beginsLate, question), number.isMultiple(of: 2) { await Task.yield() }
        return await work(on: question, by: run)
    }

    /// Checks the moment that an actor is told at which its caller stops waiting.
    private func check(_ deadline: Moment, of question: WorldQuestion, at run: SessionRun) {
        let isRight =
            if let timeout = question.timeout {
                deadline >= loop.now && deadline <= loop.now + Moment.Span(timeout)
            } else {
                deadline == .never
            }
        if !isRight { run.report(.calls, "question \(question.number) must be over at \(deadline)") }
    }

    /// Works on a question as it says.
    private func work(on question: WorldQuestion, by run: SessionRun) async -> CallOutcome {
        let number = question.number
        run.note(.event, question.asker.index, 26, "works on question \(number)")
        question.begun += 1
        if question.begun > 1 { run.report(.exactlyOnce, "works on question \(number) twice") }
        if question.wasNeverSent {
            run.report(.calls, "works on question \(number), which was never sent")
        }
        if let actor = question.actor, let later = run.questions?.begins(question, at: actor) {
            run.report(.order, "begins question \(number) to \(actor) after question \(later)")
        }
        await run.questions?.pause(
            for: question.work.delay,
            isStubborn: question.work.isStubborn || has(.ignoresCancellation, question), in: self)
        let isMixed = has(.mixesAnswers, question) && number > 0
        let answer = isMixed ? worldQuestions[number - 1].outcome : question.outcome
        question.given = answer
        return answer
    }

    // MARK: Checks

    /// Checks that no question of a run has lasted longer than its user waits.
    func checkQuestions(_ run: SessionRun) {
        for (number, question) in run.questions?.waiting ?? [:] where question.deadline < loop.now {
            return run.report(.calls, "question \(number) should have ended by \(question.deadline)")
        }
    }

    /// Asks the program and an actor in every conversation in which both sides have questions.
    func proveQuestions() {
        for run in activeRuns {
            for other in run.streams.keys.sorted() where hasQuestions(other) && haveStreams(run.index, other)
            {
                let work = WorldQuestion.Work(delay: .zero, size: 100)
                begin(run, other, named: Self.questionNames[0], of: nil, size: 100, timeout: nil, work)
                guard hasActors(other), let actor = pickActor(of: other, for: run) else { continue }
                begin(run, other, named: Self.methodNames[0], of: actor, size: 100, timeout: nil, work)
            }
        }
    }

    /// Checks, at rest, that every question is over, and that nothing of any is left at either side.
    func checkQuestionsAtRest() {
        for run in peers.compactMap(\.currentRun) where !run.hasClosed {
            guard let questions = run.questions else { continue }
            if let number = questions.waiting.keys.min() {
                run.report(.calls, "question \(number) is never answered")
            }
            let left = questions.layer.counts
            if left != (0, 0, 0) {
                run.report(
                    .leaks,
                    "\(left.outgoing) questions of its own and \(left.incoming) of others are left, "
                        + "\(left.running) are worked on")
            }
        }
    }
}
