# A formula for Homebrew. Written, but not run by the maintainers, who have no macOS.
# Replace REPOSITORY and the digest, which `make dist` prints for fkdownloader-2.0.0.tar.gz.
class Fk < Formula
  desc "Downloads that resume after interruptions"
  homepage "https://REPOSITORY"
  url "https://REPOSITORY/releases/download/2.0.0/fkdownloader-2.0.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  # Swift 6.3
  depends_on xcode: ["26.4", :build]

  # fk rpc loads it
  depends_on "libwebsockets"

  on_macos do
    depends_on macos: :sequoia
  end

  on_linux do
    depends_on "pkgconf" => :build
    depends_on "swift" => :build
    depends_on "curl"
    depends_on "openssl@3"
  end

  def install
    # The program is built outside SwiftPM's sandbox, because Homebrew has its own.
    system "swift", "build", "--disable-sandbox", "-c", "release", "--product", "fk"
    system "make", "--assume-old=build", "install", "PREFIX=#{prefix}"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/fk --version")
    system bin/"fk", "demo", "--no-progress"
  end
end
