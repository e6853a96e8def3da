import NighCore
import NighTestKit

// In some worlds strangers announce the peers' PeerIDs at addresses of their own, and prove nothing. They make
// meeting take longer, and do nothing else: all rules hold as in any other world.

extension World {
    func scheduleImpostors() {
        guard plan.impostors > 0 else { return }
        schedule(after: generator.milliseconds(100...4_000)) { [self] in
            guard !isQuiet else { return }
            changeImpostors()
            scheduleImpostors()
        }
    }

    /// Adds an impostor. If the plan allows no more, removes one instead.
    private func changeImpostors() {
        guard impostors.count < plan.impostors else {
            let gone = impostors.remove(at: generator.number(0...impostors.count - 1))
            note(.fault, "\(gone.address) is gone")
            return gone.shutdown()
        }
        guard let victim = generator.pick(peers),
            let behavior = generator.pick(Impostor.Behavior.allCases)
        else { return }
        let name = "impostor-\(counts.impostors)"
        counts.impostors += 1
        note(.fault, "\(name) announces \(victim.index), \(behavior)")
        let advertisement = Advertisement(
            service: SessionRun.service, peer: victim.identity.peerID, name: DisplayName(fitting: name))
        impostors.append(
            Impostor(behavior, at: name, announcing: advertisement, hub: network.hub(), loop: loop))
    }

    func removeImpostors() {
        for impostor in impostors { impostor.shutdown() }
        impostors = []
    }
}
