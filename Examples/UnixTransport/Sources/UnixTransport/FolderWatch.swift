// Tells that something in the folder has changed, by inotify. What that is, a look at the folder says better.
import Glibc
import NighCore
import NighUV

/// To be used on its loop only; hence `@unchecked Sendable`.
final class FolderWatch: @unchecked Sendable {
    private let descriptor = inotify_init1(O_NONBLOCK | O_CLOEXEC)
    private var watch: DescriptorWatch?

    /// Calls `changed` on the loop. Where the system has no watch to give, it never does.
    init(_ folder: Folder, on loop: UVEventLoop, changed: @escaping @Sendable () -> Void) {
        let events =
            IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF
            | IN_MOVE_SELF
        guard inotify_add_watch(descriptor, folder.path, UInt32(events)) >= 0 else { return }
        watch = try? loop.watch(descriptor, for: [.readable]) { [weak self] _ in
            guard let self else { return }
            var buffer = [UInt8](repeating: 0, count: 16_384)
            _ = read(descriptor, &buffer, buffer.count)
            // Once for all that comes within this time. By then also the lock of somebody who was killed is free, which the
            // system takes back just after it has told that the file was closed.
            watch?.events = []
            loop.schedule(at: loop.now + .milliseconds(10)) { [weak self] in
                guard let self else { return }
                watch?.events = [.readable]
                changed()
            }
        }
    }

    deinit {
        watch?.cancel()
        close(descriptor)
    }
}
