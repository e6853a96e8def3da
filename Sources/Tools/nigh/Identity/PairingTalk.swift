import Glibc
import JSONText
import NighLoop
import NighCore

/// One pairing: finds the other peer, shows the digits, and asks the person.
///
/// `@unchecked Sendable`: all mutable state is confined to the session's loop.
final class PairingTalk: @unchecked Sendable {
    private let mine: CommandSession
    private let results: Results
    private var waiting: CheckedContinuation<Peer, any Error>?
    private var outcome: Result<Peer, any Error>?
    /// The task in which this side asks the other for a pairing.
    private var asking: Task<Void, Never>?

    static let digitsKind = Results.Kind("digits", plural: "digits")

    init(_ mine: CommandSession, _ results: Results) {
        self.mine = mine
        self.results = results
    }

    /// Pairs with the peer that `choice` names, or with a peer that asks if `choice` is nil. Returns that peer.
    func run(with choice: PeerChoice?, within patience: Duration, _ interruption: Interruption) async throws
        -> Peer
    {
        mine.start(onEvent: { [self] in handle($0) })
        interruption.onRequest { [self] in
            mine.loop.execute { [self] in end(.failure(Interrupted())) }
        }
        if let choice {
            mine.loop.execute { [self] in
                asking = Task {
                    do { try await ask(choice, within: patience) } catch {
                        // Once the digits are shown, the outcome arrives as an event.
                        mine.loop.execute { [self] in if !isBusy { end(.failure(error)) } }
                    }
                }
            }
        } else {
            mine.loop.execute { [self] in
                mine.loop.schedule(at: mine.loop.now + Moment.Span(patience)) { [self] in
                    guard !isBusy else { return }
                    end(.failure(mine.groundlessness ?? NighError(.pairing, .timedOut, advice: Self.advice)))
                }
            }
            results.live.show([
                "Waiting for somebody who wants to be paired; on the other device: "
                    + Line("nigh pair \(mine.session.configuration.name)", .strong)
            ])
        }
        return try await withCheckedThrowingContinuation { continuation in
            mine.loop.execute { [self] in
                waiting = continuation
                if let outcome { end(outcome) }
            }
        }
    }

    private static let advice =
        "start `nigh pair` on the other device, too, and let both look at the same network"

    /// Whether two people are comparing the digits. The command's timeout does not apply then.
    private var isBusy = false

    private func ask(_ choice: PeerChoice, within patience: Duration) async throws {
        let session = mine.session
        try await mine.call(choice, for: .pair, .init(span: patience)) { target, timeout in
            switch target {
            case .peer(let id): try await session.pair(id)
            case .address(let address):
                // The peer at an address is known only once there is a conversation.
                let id = try await session.invite(
                    at: address, context: Purpose.pair.context, timeout: timeout)
                try await session.pair(id)
            }
        }
    }

    private func end(_ result: Result<Peer, any Error>) {
        outcome = outcome ?? result
        guard let outcome else { return }
        asking?.cancel()
        waiting?.resume(with: outcome)
        waiting = nil
    }

    private func handle(_ event: SessionEvent) {
        switch event {
        case .pairing(let peer, let code): show(code, of: peer)
        case .paired(let peer): end(.success(peer))
        case .pairingEnded(let peer, let cause):
            // No digits were shown yet: this side may ask again, or reports by itself why it does not.
            guard isBusy || asking == nil else { return }
            isBusy = false
            results.remark("no pairing with \(peer.name): \(cause)")
            end(.failure(cause))
        case .invited(let invitation): mine.session.accept(invitation)
        default: break
        }
    }

    private func show(_ code: PairingCode, of peer: Peer) {
        isBusy = true
        // If this side asked a second time, neither pairing would go on.
        asking?.cancel()
        results.live.show([])
        results.tell(
            Self.digitsKind,
            [.init("digits", .text(code.digits))] + PeerTelling.members(of: peer),
            words: [
                Line(peer.name.description, .strong) + " (\(peer.id.short)) should show the same digits:",
                "    " + Line(code.description, .strong),
            ])
        if !results.isInWords { results.remark("\(peer.name) (\(peer.id.short)) should show \(code)") }
        // A person may take long, so the answer must not be awaited on the loop. Without an answer, this thread ends
        // only with the program.
        let mine = mine
        let results = results
        BlockingTask.run {
            let agree = Question.isAgreed("Are they the same on both devices?", results)
            mine.session.confirmPairing(with: peer.id, digitsAgree: agree)
        }
    }
}
