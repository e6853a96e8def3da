import Glibc
import NighCore

/// The folder for this user's data, shared by all programs that use Nigh.
package enum DataFolder {
    /// The path of `nigh` in `$XDG_DATA_HOME`, or in `~/.local/share` if that is unset. Nil if there is no home folder.
    package static var ofThisUser: String? {
        path(
            dataHome: getenv("XDG_DATA_HOME").map { String(cString: $0) },
            home: getenv("HOME").map { String(cString: $0) })
    }

    /// Returns the same path for a user with these two folders. A path that is not absolute counts as
    /// unset, as the XDG specification requires.
    static func path(dataHome: String?, home: String?) -> String? {
        if let dataHome, dataHome.hasPrefix("/") { return dataHome + "/nigh" }
        if let home, home.hasPrefix("/") { return home + "/.local/share/nigh" }
        return nil
    }
}
