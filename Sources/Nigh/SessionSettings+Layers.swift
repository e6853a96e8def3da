import NighCalls
import NighChannels
import NighGroups
import NighIntroductions
import NighLoop

extension SessionSettings {
    /// The layers of a session with these settings, but for those that its beginning needs: first those of Nigh, then
    /// the program's own.
    func layers(_ identity: Identity, for configuration: SessionConfiguration) -> [any SessionLayer] {
        let members = MeshMembers(topology == .mesh ? meshMembers : .everyone)
        let introductions = Introductions(
            identity, of: configuration, isMesh: topology == .mesh, relaying: relays.policy,
            limits: relays.limits, refusing: { members.reason(against: $0, $1) })
        let inviter = AutomaticInviter(
            isOn: connectsAutomatically, refusing: { members.reason(against: $0) })
        let groups = Groups()
        return [
            MessageCoding(coder), OpenedStreams(), Channels(), Calls(), members, FileReception(files), groups,
            GroupReaders(groups),
            introductions,
            IntroductionReports(introductions), inviter,
        ] + (log.map { [EventLog($0)] } ?? []) + layers
    }
}

/// Reports the results of introductions as events of the session.
final class IntroductionReports: SessionLayer {
    private let introductions: Introductions

    init(_ introductions: Introductions) { self.introductions = introductions }

    func attach(to session: Session) {
        let session = session.reference
        introductions.report(
            to: Introductions.Observer(
                failed: { session.report(.automaticInvitationFailed(session.peer($0), $1)) },
                violated: { session.report(.problem($0)) }))
    }
}
