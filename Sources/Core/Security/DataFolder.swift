import Glibc

/// Where what belongs to this user is kept, for all programs that use Nigh.
package enum DataFolder {
    /// `nigh` in `$XDG_DATA_HOME`, or where that is unset in `~/.local/share`; nil where there is no home folder.
    package static var ofThisUser: String? {
        path(
            dataHome: getenv("XDG_DATA_HOME").map { String(cString: $0) },
            home: getenv("HOME").map { String(cString: $0) })
    }

    /// The same, of a user with these two folders. One that is no absolute path counts as unset, as the XDG specification has it.
    static func path(dataHome: String?, home: String?) -> String? {
        if let dataHome, dataHome.hasPrefix("/") { return dataHome + "/nigh" }
        if let home, home.hasPrefix("/") { return home + "/.local/share/nigh" }
        return nil
    }
}
