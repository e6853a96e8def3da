import Glibc
import JSONText
import NighLoop
import NighCore

/// One pairing: finds the other peer, shows the digits, and asks the person.
///
/// `@unchecked Sendable`: all mutable state is confined to the session's loop.
final class PairingDialog: @unchecked Sendable {
    private let commandSession: CommandSession
    private let results: Results
    private var waiting: CheckedContinuation<Peer, any Error>?
    private var outcome: Result<Peer, any Error>?
    /// The task in which this side asks the other for a pairing.
    private var request: Task<Void, Never>?
    /// The task in which the person is asked about the digits.
    private var question: Task<Void, Never>?

    static let digitsKind = Results.Kind("digits", plural: "digits")

    init(_ commandSession: CommandSession, _ results: Results) {
        self.commandSession = commandSession
        self.results = results
    }

    /// Pairs with the peer that `choice` names, or with a peer that asks if `choice` is nil. Returns that peer.
    func run(with choice: PeerChoice?, within timeout: Duration, _ stopRequest: StopRequest) async throws
        -> Peer
    {
        commandSession.start(onEvent: { [self] in handle($0, stopRequest) })
        stopRequest.onRequest { [self] in
            commandSession.loop.execute { [self] in end(.failure(Interrupted())) }
        }
        if let choice {
            commandSession.loop.execute { [self] in
                request = Task {
                    do { try await requestPairing(with: choice, within: timeout) } catch {
                        // Once the digits are shown, the outcome arrives as an event.
                        commandSession.loop.execute { [self] in if !isBusy { end(.failure(error)) } }
                    }
                }
            }
        } else {
            commandSession.loop.execute { [self] in
                commandSession.loop.schedule(at: commandSession.loop.now + Moment.Span(timeout)) { [self] in
                    guard !isBusy else { return }
                    end(
                        .failure(
                            commandSession.transportsUnavailable
                                ?? NighError(.pairing, .timedOut, advice: Self.advice)))
                }
            }
            let name = ShellWord.operand("\(commandSession.session.configuration.name)")
            results.showWaiting(
                "waiting for a peer that wants to pair; run on the other device: "
                    + Line("nigh pair \(name)", .strong))
        }
        return try await withCheckedThrowingContinuation { continuation in
            commandSession.loop.execute { [self] in
                waiting = continuation
                if let outcome { end(outcome) }
            }
        }
    }

    private static let advice =
        "start `nigh pair` on the other device, too, and connect both to the same network"

    /// Whether two people are comparing the digits. The command's timeout does not apply then.
    private var isBusy = false

    private func requestPairing(with choice: PeerChoice, within timeout: Duration) async throws {
        let session = commandSession.session
        try await commandSession.call(choice, for: .pair, .init(timeLimit: timeout)) { target, timeout in
            switch target {
            case .peer(let id): try await Self.ask(id, session)
            case .address(let address):
                // The peer at an address is known only once there is a conversation.
                let id = try await session.invite(
                    at: address, context: InvitationPurpose.pair.context, timeout: timeout)
                try await Self.ask(id, session)
            }
        }
    }

    /// Asks for the pairing. Cancelling the task leaves a pairing alone whose digits are shown.
    private static func ask(_ peer: PeerID, _ session: Session) async throws(NighError) {
        let result = await withCheckedContinuation { continuation in
            session.pair(peer) { continuation.resume(returning: $0) }
        }
        _ = try result.get()
    }

    private func end(_ result: Result<Peer, any Error>) {
        outcome = outcome ?? result
        guard let outcome else { return }
        request?.cancel()
        question?.cancel()
        waiting?.resume(with: outcome)
        waiting = nil
    }

    private func handle(_ event: SessionEvent, _ stopRequest: StopRequest) {
        switch event {
        case .pairingCode(let peer, let code): show(code, of: peer, stopRequest)
        case .paired(let peer): end(.success(peer))
        case .pairingFailed(_, let cause):
            // No digits were shown yet: this side may ask again, or reports by itself why it does not.
            guard isBusy else { return }
            isBusy = false
            end(.failure(cause))
        case .invited(let invitation): invitation.accept()
        default: break
        }
    }

    private func show(_ code: PairingCode, of peer: Peer, _ stopRequest: StopRequest) {
        isBusy = true
        // If this side asked a second time, neither pairing would go on.
        request?.cancel()
        commandSession.endAnnouncements()
        results.report(
            Self.digitsKind,
            [.init("digits", .text(code.digits))] + PeerReport.members(of: peer),
            lines: [
                Line(peer.name, .strong)
                    + " (\(peer.identity.short)) should show the same digits:",
                "    " + Line(code.description, .strong),
            ])
        if !results.isText { results.remark("\(peer.name) (\(peer.identity.short)) should show \(code)") }
        question = Task { [commandSession, results] in
            do {
                let agree = try await Question.isConfirmed(
                    "Are they the same on both devices?", results, stopRequest)
                guard let agree else { return }
                commandSession.session.peer(peer.id).confirmPairing(digitsAgree: agree)
            } catch {
                commandSession.loop.execute { [self] in end(.failure(error)) }
            }
        }
    }
}
