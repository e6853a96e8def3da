import Glibc
import NighLoop

/// Checks the needs of every transport: the event loop, and the limits that the system sets for this user.
enum SystemCheck {
    /// Checks whether an event loop can be made.
    static func loop() -> Finding {
        let (id, subject) = ("libuv", "event loop")
        do throws(NighError) {
            let loop = try UVEventLoop.make()
            loop.shutdown()
            return Finding(id, subject, .pass, "libuv \(UVEventLoop.libraryVersion)")
        } catch {
            return Finding(id, subject, failed: error)
        }
    }

    /// A limit below this number of descriptors is too low: a session with mDNS takes about thirty, and one more for
    /// each peer.
    static let fewDescriptors = 256

    /// Checks how many descriptors a program of this user may have.
    static func descriptors() -> Finding {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return Finding(
                "limits.descriptors", "open files", .warn, "the system does not report the limit")
        }
        return descriptors(soft: UInt64(limit.rlim_cur), hard: UInt64(limit.rlim_max))
    }

    static func descriptors(soft: UInt64, hard: UInt64) -> Finding {
        let (id, subject) = ("limits.descriptors", "open files")
        guard soft < UInt64(fewDescriptors) else {
            return Finding(id, subject, .pass, soft > 1 << 40 ? "no limit" : "\(soft) at once")
        }
        let wanted = min(max(hard, soft), 1_024)
        return Finding(
            id, subject, .warn,
            "\(soft) at once, which is low: each peer takes one, each program about thirty",
            advice: wanted > soft ? "`ulimit -n \(wanted)`" : "raise nofile in /etc/security/limits.conf")
    }
}
