import Glibc
import NighCore
import Synchronization

/// The use of an identity by one session: the identity's own key, or a delegate of it if another session of the same
/// service has that key.
///
/// The session ends the use when it closes. Then another one may have the key.
public final class IdentityUse: Sendable {
    /// The key of the session.
    public let identity: Identity
    private let held: Mutex<Held>

    private struct Held {
        var place: IdentityPlace.Taken?
        /// The descriptor of the identity file, with a shared lock. Nil if it could not be opened or locked.
        var file: Int32?

        /// Locks the file for this session alone. Returns false if others use it.
        func takeWholeFile() -> Bool {
            guard let file else { return true }
            if flock(file, LOCK_EX | LOCK_NB) == 0 { return true }
            // The attempt may have cost the shared lock.
            flock(file, LOCK_SH | LOCK_NB)
            return false
        }
    }

    private init(_ identity: Identity, _ held: Held = Held()) {
        self.identity = identity
        self.held = Mutex(held)
    }

    deinit { end() }

    /// Uses an identity that no other session has, such as a temporary one.
    public static func alone(_ identity: Identity) -> IdentityUse { IdentityUse(identity) }

    /// Loads the identity from its file, and takes a place among the sessions that use it.
    ///
    /// A program of an earlier version locks the whole file. While it runs, sessions of every service use delegates;
    /// and while one of them runs, such a program gets a temporary key. Where no places can be kept, because the data
    /// folder cannot be written, a session locks the whole file in the same way.
    public static func begin(_ file: IdentityFile, for service: ServiceName) throws(NighError) -> IdentityUse
    {
        try begin(file, for: service, placesIn: IdentityPlace.folder)
    }

    package static func begin(
        _ file: IdentityFile, for service: ServiceName, placesIn folder: String?
    ) throws(NighError) -> IdentityUse {
        let identity = try file.load()
        var held = Held()
        let descriptor = open(file.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        var isTakenWhole = false
        if descriptor >= 0 {
            if flock(descriptor, LOCK_SH | LOCK_NB) == 0 {
                held.file = descriptor
            } else {
                isTakenWhole = errno == EWOULDBLOCK
                close(descriptor)
            }
        }
        var isFirst = !isTakenWhole
        do throws(IdentityPlace.Obstacle) {
            let place = try IdentityPlace.take(
                service, of: identity.peerID, from: isTakenWhole ? 1 : 0, in: folder)
            held.place = place
            isFirst = place.number == 0
        } catch {
            isFirst = error == .noFolder && isFirst && held.takeWholeFile()
        }
        return IdentityUse(isFirst ? identity : identity.makeDelegate(), held)
    }

    /// Gives the place up. Another session may have the identity's own key.
    package func end() {
        let held = held.withLock { held in
            defer { held = Held() }
            return held
        }
        held.place?.release()
        if let file = held.file { close(file) }
    }
}

extension IdentityUse: SessionLayer {
    /// Ends the use. Another session may have the identity's own key.
    public func sessionDidClose() { end() }
}

extension IdentityFile {
    /// Whether a program of an earlier version has locked the whole file.
    package var isTakenWhole: Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
    }
}
