# Does inside bubblewrap what launch.py does, with the same options and words, and is there in a quarter of the time.
# It leaves out `tmp` and `listen`, which are launch.py's, and adds two: `call=NAME:NUMBER` the numbers of the kernel's
# calls on this machine; `locale=VALUE` the command's LC_ALL, because this program is started in the plain one.
# An option that it does not know ends it. It loads no module: nothing it could be led to look for is ever looked for.

BEGIN { @INC = () }

$CANNOT = 125;
($CREATE_RULESET, $ADD_RULE, $RESTRICT_SELF, $CLOSE_RANGE) = (444, 445, 446, 436);
$OLDEST = 3;    # the first version that also forbids cutting files short
($NO_NEW_PRIVS, $CAPBSET_DROP, $SET_SECCOMP, $MODE_FILTER) = (38, 24, 22, 2);
($AT_FDCWD, $PATH_ONLY, $CLOSE_ON_EXEC) = (-100, 0x200000, 0x80000);

($EXECUTE, $WRITE, $READ, $LIST) = (1 << 0, 1 << 1, 1 << 2, 1 << 3);
($TRUNCATE, $DEVICE_CALLS) = (1 << 14, 1 << 15);
$READING = $EXECUTE | $READ | $LIST;
$ON_FILES = $EXECUTE | $WRITE | $READ | $TRUNCATE | $DEVICE_CALLS;
%LIMITS = (CPU => 0, FSIZE => 1, DATA => 2, STACK => 3, CORE => 4, NPROC => 6, NOFILE => 7, AS => 9);

sub give_up {
    print STDERR "launch: $_[0]\n";
    exit $CANNOT;
}

# A call of the kernel by the name it was told under. Texts go as pointers and numbers as numbers; @_ is handed on itself,
# so that the kernel writes where the caller reads.
sub kernel {
    my $name = shift;
    my $number = $call{$name} or give_up("the number of $name was not told");
    return syscall($number, @_);
}

# Tell the gateway, over the descriptor it named, that we are here, and wait for its word: see launch.py.
sub be_let_go {
    my $hold = delete $ENV{GARRA_HOLD};
    return if !length $hold;
    open my $door, '+<&=', $hold or exit $CANNOT;
    syswrite $door, '.';
    sysread($door, my $word, 1) or exit $CANNOT;
    close $door;
}

# No more than what holds already.
sub limit {
    my ($name, $most) = $_[0] =~ /^([A-Z]+):(\d+)\z/ or give_up("$_[0] is no limit");
    exists $LIMITS{$name} or give_up("there is no limit $name");
    my $held = "\0" x 16;
    kernel('prlimit64', 0, $LIMITS{$name}, 0, $held) == 0 or give_up("the limit $name cannot be read");
    my $hard = (unpack 'Q2', $held)[1];
    my $wanted = $most < $hard ? 0 + $most : $hard;
    my $new = pack 'Q2', $wanted, $wanted;
    kernel('prlimit64', 0, $LIMITS{$name}, $new, 0) == 0 or give_up("the limit $name cannot be put on");
}

sub drop_capabilities {
    kernel('prctl', $CAPBSET_DROP, $_, 0, 0, 0) for 0 .. 63;
    my ($head, $none) = (pack('L2', 0x20080522, 0), "\0" x 24);
    kernel('capset', $head, $none);
}

# Let $rights through at $path and below; a path that is not there needs no rule.
sub allow {
    my ($rules, $path, $rights) = @_;
    my $place = kernel('openat', $AT_FDCWD, $path, $PATH_ONLY | $CLOSE_ON_EXEC, 0);
    return if $place < 0;
    $rights &= $ON_FILES if !-d $path;
    my $rule = pack 'Q L', $rights, $place;
    syscall($ADD_RULE, $rules, 1, $rule, 0) == 0 or give_up("$path: the kernel takes no Landlock rule for it");
    kernel('close', $place);
}

# Files, TCP, signals and sockets, by Landlock.
sub restrict {
    my ($offline, $further, @options) = @_;
    my $version = syscall($CREATE_RULESET, 0, 0, 1);
    return if $version < $OLDEST && $further;
    give_up('this kernel has no Landlock' . ($version > 0 ? ', or an old one' : '')) if $version < $OLDEST;
    my $everything = (1 << ($version >= 5 ? 16 : 15)) - 1;
    my $body = pack 'Q', $everything;
    $body .= pack 'Q', $offline ? 0b11 : 0 if $version >= 4;
    $body .= pack 'Q', 0b11 if $version >= 6;    # no signals and abstract sockets outside
    my $rules = syscall($CREATE_RULESET, $body, length $body, 0);
    give_up('the kernel takes no Landlock rules') if $rules < 0;
    my %rights = (read => $READING, write => $everything, device => ($READ | $WRITE | $DEVICE_CALLS) & $everything);
    for (@options) {
        my ($name, $value) = @$_;
        allow($rules, $value, $rights{$name}) if exists $rights{$name};
    }
    syscall($RESTRICT_SELF, $rules, 0) == 0 or give_up('the kernel does not take the Landlock rules');
}

sub close_the_rest {
    return if syscall($CLOSE_RANGE, 3, 0xFFFFFFFF, 0) == 0;
    kernel('close', $_) for 3 .. 1023;
}

sub filter_calls {
    $_[0] =~ /^(?:[0-9a-f]{16})+\z/ or give_up('there is no seccomp filter');
    my $program = pack 'H*', $_[0];
    my $head = pack 'S x6 P', length($program) / 8, $program;
    kernel('prctl', $SET_SECCOMP, $MODE_FILTER, $head, 0, 0) == 0 or give_up('the kernel takes no seccomp filter');
}

give_up('this Perl is not one of 64 bits') if length pack('L!', 0) != 8;
$known = qr/^(?:read|write|device|offline|filter|limit|further|nolocale|call|locale)\z/;
while (@ARGV && (my $option = shift @ARGV) ne '--') {
    my ($name, $value) = split /=/, $option, 2;
    $name =~ $known or give_up("the option $name is not known");
    push @options, [$name, $value];
    $named{$name} = defined $value ? $value : '';
    $call{$1} = 0 + $2 if $name eq 'call' && $value =~ /^(\w+):(\d+)\z/;
}
give_up('there is no command') if !@ARGV;
be_let_go();
$$_[0] eq 'limit' and limit($$_[1]) for @options;
kernel('prctl', $NO_NEW_PRIVS, 1, 0, 0, 0) == 0 or give_up('the kernel lets privileges be gained');
drop_capabilities() if !exists $named{further};
restrict(exists $named{offline}, exists $named{further}, @options);
close_the_rest();
delete $ENV{LC_CTYPE} if exists $named{nolocale};
delete $ENV{LC_ALL};
$ENV{LC_ALL} = $named{locale} if exists $named{locale};
$SIG{$_} = 'DEFAULT' for qw(HUP INT QUIT PIPE XFSZ);
filter_calls($named{filter});
exec {$ARGV[0]} @ARGV or give_up("$ARGV[0]: $!");
