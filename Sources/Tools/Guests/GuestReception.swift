import NighCore
import NighLoop

/// Invites guests to a program's session: has the code shown when the session listens for them and when a code has
/// become too old, and opens the desk at which `nigh guests` asks.
///
/// A layer of its session. All state is confined to the session's loop; hence `@unchecked Sendable`.
public final class GuestReception: SessionLayer, @unchecked Sendable {
    /// The sentence that a person reads before a guest comes in.
    public static let warning =
        "Not encrypted: anyone on this network can read and change what passes between a guest and you."

    private let show: @Sendable (GuestInvitation, _ isRenewed: Bool) -> Void
    private weak var session: Session?
    private var desk: GuestDesk?
    private var timer: LoopTimer?
    private var hasInvited = false
    /// Whether a code was shown that nobody has used.
    private var isUnused = false

    /// - Parameter show: shows an invitation, which may take the place of one that is too old. Called on the loop.
    public init(_ show: @escaping @Sendable (GuestInvitation, _ isRenewed: Bool) -> Void) { self.show = show }

    /// Begins to follow a session.
    public func attach(to session: Session) { self.session = session }

    /// Takes an event of the session. Called on its loop.
    public func handle(_ event: SessionEvent) {
        switch event {
        case .listening(let scheme, let addresses):
            guard let session, session.hasGuests(over: scheme), !addresses.isEmpty else { return }
            if desk == nil { desk = GuestDesk(of: session) }
            if !hasInvited { invite() }
        case .invited(let invitation): if invitation.peer.trust == .guest { isUnused = false }
        default: break
        }
    }

    /// Shows nothing more, and closes the desk.
    public func sessionWillClose() {
        if let timer { session?.loop.cancel(timer) }
        timer = nil
        desk?.close()
        desk = nil
    }

    private func schedule(after time: Moment.Span) {
        guard let loop = session?.loop else { return }
        if let timer { loop.cancel(timer) }
        timer = loop.schedule(at: loop.now + time) { [weak self] in
            guard let self else { return }
            timer = nil
            if isUnused { invite() }
        }
    }

    private func invite() {
        guard let session else { return }
        let isRenewed = hasInvited
        hasInvited = true
        Task {
            guard let invitation = try? await session.inviteGuest() else { return }
            session.loop.execute { [self] in
                guard desk != nil else { return }
                isUnused = true
                show(invitation, isRenewed)
                schedule(after: Moment.Span(invitation.validity))
            }
        }
    }
}
