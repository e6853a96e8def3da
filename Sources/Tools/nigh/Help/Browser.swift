import Glibc

/// The user's browser.
enum Browser {
    /// Opens a page. Returns false if there is no screen or no browser.
    static func open(_ address: String) -> Bool {
        let screens: [String] = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"]
        guard screens.contains(where: { getenv($0).map { $0.pointee != 0 } ?? false }) else { return false }
        let words: [String] = ["xdg-open", address]
        let arguments = words.map { strdup($0) }
        defer { for argument in arguments { free(argument) } }
        var process = pid_t()
        guard posix_spawnp(&process, "xdg-open", nil, nil, arguments + [nil], environ) == 0 else {
            return false
        }
        var status: Int32 = 0
        return waitpid(process, &status, 0) == process && status == 0
    }
}
