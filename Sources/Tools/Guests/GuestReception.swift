import NighCore
import NighLoop

/// Invites guests to a program's session: has the code shown when the session listens for them and when a code does not
/// work any more, and opens the desk at which `nigh guests` asks.
///
/// A layer of its session. All state is confined to the session's loop; hence `@unchecked Sendable`.
public final class GuestReception: @unchecked Sendable {
    /// The sentence that a person reads before a guest comes in.
    public static let warning =
        "Not encrypted: anyone on this network can read and change what passes between a guest and you."

    /// When a code takes the place of another one.
    public enum Renewal: Hashable, Sendable {
        /// When an unused code is too old.
        case whileUnused
        /// When an unused code is too old, and this long after a guest has used one.
        case afterUse(Duration)
    }

    private let renewal: Renewal
    private let show: @Sendable (GuestInvitation, _ isRenewed: Bool) -> Void
    private weak var session: Session?
    private var desk: GuestDesk?
    private var timer: LoopTimer?
    private var isListening = false
    private var hasInvited = false
    /// Whether a code was shown that nobody has used.
    private var isUnused = false

    /// - Parameter show: shows an invitation, which may take the place of one that is too old. Called on the loop.
    public init(
        _ renewal: Renewal = .whileUnused,
        show: @escaping @Sendable (GuestInvitation, _ isRenewed: Bool) -> Void
    ) {
        self.renewal = renewal
        self.show = show
    }

    private func schedule(after time: Moment.Span) {
        guard let loop = session?.loop else { return }
        if let timer { loop.cancel(timer) }
        timer = loop.schedule(at: loop.now + time) { [weak self] in
            guard let self else { return }
            timer = nil
            if isUnused || renewal != .whileUnused { invite() }
        }
    }

    private func used() {
        isUnused = false
        if case .afterUse(let pause) = renewal { schedule(after: Moment.Span(pause)) }
    }

    /// Has a new code shown now, if the session listens for guests. Called on the loop.
    public func renew() { if isListening { invite() } }

    private func invite() {
        guard let session else { return }
        let isRenewed = hasInvited
        hasInvited = true
        Task {
            guard let invitation = try? await session.inviteGuest() else { return }
            session.loop.execute { [self] in
                guard isListening else { return }
                isUnused = true
                show(invitation, isRenewed)
                schedule(after: Moment.Span(invitation.validity))
            }
        }
    }
}

// The protocol documents these members.
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
extension GuestReception: SessionLayer {
    public func attach(to session: Session) { self.session = session }

    public func handle(_ event: SessionEvent) {
        switch event {
        case .listening(let scheme, let addresses):
            guard let session, session.hasGuests(over: scheme) else { return }
            guard !addresses.isEmpty else {
                isListening = false
                return
            }
            if desk == nil { desk = GuestDesk(of: session) }
            guard !isListening else { return }
            isListening = true
            session.onGuestInvitationUsed { [weak self] in self?.used() }
            invite()
        default: break
        }
    }

    public func sessionWillClose() {
        if let timer { session?.loop.cancel(timer) }
        timer = nil
        isListening = false
        desk?.close()
        desk = nil
    }
}
